import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { editDistance } from "./edit-distance.ts";

describe("editDistance", () => {
  it.each([
    ["", "", 0],
    ["", "abc", 3],
    ["abc", "abc", 0],
    ["crate", "create", 1],
    ["fokr", "fork", 1],
    ["kitten", "sitting", 3],
    ["ab", "ba", 1],
    ["aa", "b", 2],
  ])("of %j and %j is %i", (from, to, distance) => {
    expect(editDistance(from, to)).toBe(distance);
  });

  it("is the same both ways, 0 for equal words alone, and at most the longer length", () => {
    const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 8 });
    fc.assert(
      fc.property(word, word, (from, to) => {
        const distance = editDistance(from, to);
        expect(distance).toBe(editDistance(to, from));
        expect(distance === 0).toBe(from === to);
        expect(distance).toBeLessThanOrEqual(Math.max(from.length, to.length));
        expect(distance).toBeGreaterThanOrEqual(Math.abs(from.length - to.length));
      }),
    );
  });
});
