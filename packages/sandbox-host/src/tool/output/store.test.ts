import { describe, expect, it } from "@jest/globals";
import { overBudget } from "./store.ts";

const held = (...of: readonly (readonly [string, number])[]) => of.map(([token, bytes]) => ({ token, bytes }));

describe("overBudget", () => {
  it("is empty as long as all fits", () => {
    expect(overBudget(held(["a", 5], ["b", 5]), 10)).toEqual([]);
    expect(overBudget([], 0)).toEqual([]);
  });

  it("is the oldest of the session that holds most, however old another one's is", () => {
    const items = held(["quiet", 1], ["hog", 4], ["hog", 5], ["hog", 6]);
    expect(overBudget(items, 12)).toEqual(held(["hog", 4]));
    expect(overBudget(items, 7)).toEqual(held(["hog", 4], ["hog", 5]));
    expect(overBudget(items, 0)).toHaveLength(4);
  });
});
