import { fitExponent, nLogNExponent, type Point } from "./statistics.ts";

/**
 * Cost against work. `whole`: one operation on n things. `each`: one more operation while n things are there, of which n
 * cost n times as much.
 */
export interface GrowthLaw {
  readonly of: "whole" | "each";
  /** What is counted on the x axis. */
  readonly things: string;
}

export interface GrowthFit {
  readonly exponent: number;
  /** The exponent that n log n has over the same range. */
  readonly limit: number;
  /** `none` where there are too few points to tell. */
  readonly verdict: "pass" | "fail" | "none";
}

/** Costs of a few milliseconds vary by so much between runs. */
const TOLERANCE = 0.1;
const LEAST_POINTS = 3;

export function fitGrowth({ of }: GrowthLaw, points: readonly Point[]): GrowthFit {
  const total = of === "whole" ? points : points.map(({ x, y }) => ({ x, y: x * y }));
  const exponent = fitExponent(total);
  const limit = nLogNExponent(points);
  const verdict = exponent <= limit + TOLERANCE ? "pass" : "fail";
  return { exponent, limit, verdict: points.length < LEAST_POINTS ? "none" : verdict };
}
