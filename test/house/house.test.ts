import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";
import { judge, lower } from "../../scripts/house/limits.mjs";
import { countAll, measureAll } from "../../scripts/house/measures.mjs";

const root = path.resolve(import.meta.dirname, "../..");

/** A number for the whole repository, or one for each package. */
type Counts = Readonly<Record<string, number | Readonly<Record<string, number>>>>;

const readLimits = (): Counts => JSON.parse(readFileSync(path.join(root, "test/house/limits.json"), "utf8")) as Counts;
const judged = (counts: Counts, limits: Counts): readonly string[] => judge(counts, limits);
const lowered = (counts: Counts, limits: Counts): Counts => lower(counts, limits);

describe("the house", () => {
  it("is within the limits of test/house/limits.json, and they state the truth", () => {
    expect(judged(countAll(measureAll(root)) as Counts, readLimits())).toEqual([]);
  }, 60_000);
});

describe("judge", () => {
  it("accepts measures at their limits", () => {
    expect(judged({ a: 1, b: { core: 2 } }, { a: 1, b: { core: 2 } })).toEqual([]);
  });

  it("refuses a measure above its limit, also of one package", () => {
    expect(judged({ a: 2 }, { a: 1 })).toEqual([expect.stringContaining("a: 2, and the limit is 1")]);
    const parts = judged({ b: { core: 2, client: 3 } }, { b: { core: 2, client: 2 } });
    expect(parts).toEqual([expect.stringContaining("b (client): 3, and the limit is 2")]);
  });

  it("says when a limit can be lowered, also of a package that is gone", () => {
    expect(judged({ a: 1 }, { a: 3 })).toEqual(["a: 1; lower the limit of 3 to 1"]);
    expect(judged({ b: 0 }, { b: { core: 2 } })).toEqual(["b (core): 0; lower the limit of 2 to 0"]);
  });

  it("takes 0 for the limit of what has none", () => {
    expect(judged({ a: 1 }, {})).toHaveLength(1);
    expect(judged({ a: { cli: 1 } }, { a: 0 })).toHaveLength(1);
    expect(judged({ a: 0 }, {})).toEqual([]);
  });
});

describe("lower", () => {
  it("lowers limits to what was counted and raises none", () => {
    expect(lowered({ a: 1, b: 5, c: 1 }, { a: 3, b: 4 })).toEqual({ a: 1, b: 4, c: 0 });
    const counts = { a: { core: 1, client: 5, cli: 1 } };
    expect(lowered(counts, { a: { core: 2, client: 4, old: 1 } })).toEqual({ a: { core: 1, client: 4 } });
    expect(lowered({ a: 0 }, { a: { core: 2 } })).toEqual({ a: 0 });
  });
});
