import { describe, expect, it } from "@jest/globals";
import { fairCap } from "./fair-cap.ts";

describe("fairCap", () => {
  it.each([
    [[1, 2, 3], 6, Number.POSITIVE_INFINITY],
    [[1, 2, 30], 9, 6],
    [[10, 10], 10, 5],
    [[100, 1, 1, 1], 53, 50],
    [[5], 0, 0],
    [[], 0, Number.POSITIVE_INFINITY],
  ])("of %j within %d is %d", (sizes, total, cap) => {
    expect(fairCap(sizes, total)).toBe(cap);
    expect(sizes.reduce((sum, size) => sum + Math.min(size, cap), 0)).toBeLessThanOrEqual(total);
  });
});
