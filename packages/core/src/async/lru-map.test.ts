import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { LruMap } from "./lru-map.ts";

describe("LruMap", () => {
  it("lets the entry go that was not used for longest", () => {
    const map = new LruMap<string, number>(2);
    map.set("a", 1);
    map.set("b", 2);
    expect(map.get("a")).toBe(1);
    expect(map.set("c", 3)).toEqual(["b", 2]);
    expect([map.has("a"), map.get("b"), map.size]).toEqual([true, undefined, 2]);
    expect(map.set("a", 4)).toBeUndefined();
    expect([...map.entries()]).toEqual([
      ["c", 3],
      ["a", 4],
    ]);
    expect([map.delete("c"), map.delete("c"), map.size]).toEqual([true, false, 1]);
    map.clear();
    expect(map.size).toBe(0);
  });

  it("does not count a look by has as use", () => {
    const map = new LruMap<string, number>(2);
    map.set("a", 1);
    map.set("b", 2);
    map.has("a");
    expect(map.set("c", 3)).toEqual(["a", 1]);
  });

  it("is what a list in the order of use is", () => {
    const act = fc.record({ kind: fc.constantFrom("get", "set", "delete"), key: fc.nat({ max: 6 }) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(act, { maxLength: 60 }), (max, acts) => {
        const map = new LruMap<number, number>(max);
        let model: number[] = [];
        for (const { kind, key } of acts) {
          const isHeld = model.includes(key);
          if (kind === "get") expect(map.get(key)).toBe(isHeld ? key : undefined);
          if (kind === "set") map.set(key, key);
          if (kind === "delete") expect(map.delete(key)).toBe(isHeld);
          const others = model.filter((held) => held !== key);
          if (kind === "set" || (kind === "get" && isHeld)) model = [...others, key].slice(-max);
          if (kind === "delete") model = others;
          expect([...map.entries()].map(([held]) => held)).toEqual(model);
        }
      }),
    );
  });

  it.each([0, -1, 1.5])("refuses %j entries", (max) => {
    expect(() => new LruMap(max)).toThrow(RangeError);
  });
});
