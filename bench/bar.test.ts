import { describe, expect, it } from "@jest/globals";
import { describeBars, judge } from "./bar.ts";
import { fitGrowth } from "./growth.ts";
import { summarize } from "./statistics.ts";

const [two, ten] = [summarize([2, 2, 30]), summarize([10, 10, 10])];

describe("a bar", () => {
  it("holds at its value and is missed above it", () => {
    const at = (value: number) => judge({ bar: { kind: "at_most_ratio", value }, by: "p50", ours: two, floor: ten });
    expect(at(0.2)).toEqual({ ratio: 0.2, verdict: "pass" });
    expect(at(0.19)).toEqual({ ratio: 0.2, verdict: "fail" });
  });

  it("compares the percentile that the row names", () => {
    const evidence = { bar: { kind: "at_most_ratio", value: 1.5 }, by: "p99", ours: two, floor: ten } as const;
    expect(judge(evidence)).toEqual({ ratio: 3, verdict: "fail" });
  });

  it("asks for more where more is better", () => {
    const bar = { kind: "at_least_ratio", value: 0.5 } as const;
    expect(judge({ bar, by: "p50", ours: two, floor: ten }).verdict).toBe("fail");
    expect(judge({ bar, by: "p50", ours: ten, floor: two }).verdict).toBe("pass");
  });

  it("may be a bound in the row's own unit, and is none where the row has none", () => {
    const below = { kind: "below", value: 2 } as const;
    expect(judge({ bar: below, by: "p50", ours: two, floor: undefined }).verdict).toBe("fail");
    expect(judge({ bar: undefined, by: "p50", ours: two, floor: ten })).toEqual({ ratio: 0.2, verdict: "none" });
    expect(describeBars({ bar: below, unit: "ms", growth: { of: "each", things: "files" }, rule: "no rest" })).toBe(
      "< 2 ms, n log n, no rest",
    );
    expect(describeBars({ unit: "ms" })).toBe("");
  });

  it("may bound what ours takes beyond the floor", () => {
    const added = (value: number) => ({ kind: "at_most_added", value }) as const;
    const at = (value: number) => judge({ bar: added(value), by: "p50", ours: ten, floor: two });
    expect(at(8)).toEqual({ ratio: 5, verdict: "pass" });
    expect(at(7.9)).toEqual({ ratio: 5, verdict: "fail" });
    expect(judge({ bar: added(1), by: "p50", ours: two, floor: ten }).verdict).toBe("pass");
    expect(describeBars({ bar: added(6), unit: "ms" })).toBe("<= floor + 6 ms");
  });

  it.each(["at_most_ratio", "at_least_ratio", "at_most_added"] as const)("%s cannot do without a floor", (kind) => {
    expect(() => judge({ bar: { kind, value: 1 }, by: "p50", ours: two, floor: undefined })).toThrow("needs a floor");
  });
});

describe("growth", () => {
  const points = (cost: (x: number) => number) => [10, 100, 1000].map((x) => ({ x, y: cost(x) }));

  it("of one operation on n things may be n log n", () => {
    const law = { of: "whole", things: "files" } as const;
    expect(
      fitGrowth(
        law,
        points((x) => x * Math.log2(x)),
      ).verdict,
    ).toBe("pass");
    expect(
      fitGrowth(
        law,
        points((x) => x ** 1.5),
      ).verdict,
    ).toBe("fail");
  });

  it("of each of n operations may be log n", () => {
    const law = { of: "each", things: "sessions" } as const;
    expect(
      fitGrowth(
        law,
        points((x) => Math.log2(x)),
      ).verdict,
    ).toBe("pass");
    expect(
      fitGrowth(
        law,
        points((x) => x),
      ).verdict,
    ).toBe("fail");
  });

  it("is not judged by two points", () => {
    expect(fitGrowth({ of: "whole", things: "files" }, points((x) => x ** 3).slice(1)).verdict).toBe("none");
  });
});
