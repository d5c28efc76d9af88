import { describe, expect, it } from "@jest/globals";
import { fitExponent, nLogNExponent, quantile, slopeOf, summarize } from "./statistics.ts";

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index + 1);

describe("a summary of samples", () => {
  it("answers with values that were measured, by the nearest rank", () => {
    const { n, p50, p95, p99, min, max } = summarize(range(100).toReversed());
    expect({ n, p50, p95, p99, min, max }).toEqual({ n: 100, p50: 50, p95: 95, p99: 99, min: 1, max: 100 });
  });

  it("has the largest of few samples as its p99", () => {
    expect(summarize([3, 1, 2]).p99).toBe(3);
    expect(quantile([7], 0.5)).toBe(7);
  });

  it("is refused where nothing was measured", () => {
    expect(() => summarize([])).toThrow("nothing was measured");
  });
});

describe("a fit", () => {
  const points = (cost: (x: number) => number) => [10, 100, 1000, 10_000].map((x) => ({ x, y: cost(x) }));

  it.each([
    ["constant cost", (_x: number) => 5, 0],
    ["cost like n", (x: number) => 3 * x, 1],
    ["cost like n squared", (x: number) => x * x, 2],
  ])("finds the exponent of %s", (_name, cost, exponent) => {
    expect(fitExponent(points(cost))).toBeCloseTo(exponent, 6);
  });

  it("knows what n log n shows over the same range", () => {
    const exponent = nLogNExponent(points(() => 1));
    expect(exponent).toBeGreaterThan(1.1);
    expect(exponent).toBeLessThan(1.3);
  });

  it("is refused where there is nothing to fit", () => {
    expect(() => slopeOf([{ x: 1, y: 1 }])).toThrow("two points");
    expect(() =>
      slopeOf([
        { x: 1, y: 1 },
        { x: 1, y: 2 },
      ]),
    ).toThrow("the same x");
  });
});
