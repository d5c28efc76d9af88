import { describe, expect, it } from "@jest/globals";
import { Shares } from "./shares.ts";

/** How many places each key comes to hold when all ask again and again, in turn. */
function greedy(size: number, keys: readonly string[]): readonly number[] {
  const shares = new Shares(size);
  for (let round = 0; round < size; round += 1) for (const key of keys) shares.enter(key);
  return keys.map((key) => shares.heldBy(key));
}

describe("shares of a number of slots", () => {
  it("leave a slot to a key that holds none as long as there are fewer keys than slots", () => {
    expect(greedy(16, ["a"])).toEqual([8]);
    expect(greedy(16, ["a", "b"])).toEqual([6, 5]);
    expect(greedy(16, ["a", "b", "c"])).toEqual([4, 4, 4]);
    for (let count = 1; count < 16; count += 1) {
      const held = greedy(
        16,
        Array.from({ length: count }, (_, key) => String(key)),
      );
      expect(held.reduce((sum, one) => sum + one)).toBeLessThan(16);
      expect(Math.min(...held)).toBeGreaterThan(0);
    }
    expect(greedy(1, ["a", "b"])).toEqual([1, 0]);
  });

  it("are left once, and are free after that", () => {
    const shares = new Shares(2);
    const leave = shares.enter("a");
    expect([shares.enter("a"), shares.held, shares.heldBy("a")]).toEqual([undefined, 1, 1]);
    leave?.();
    leave?.();
    expect([shares.held, shares.heldBy("a"), shares.hasRoom("a")]).toEqual([0, 0, true]);
  });
});
