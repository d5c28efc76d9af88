import type { GrowthLaw } from "./growth.ts";
import type { Percentile, Summary } from "./statistics.ts";

/**
 * What a row must show. A ratio is to the floor of the same run, in the same percentile; `at_least_ratio` is for rates,
 * where more is better. In the row's own unit `at_most_added` bounds what ours takes beyond the floor, and `below` what it
 * takes at all.
 */
export interface Bar {
  readonly kind: "at_most_ratio" | "at_least_ratio" | "at_most_added" | "below";
  readonly value: number;
}

export type Verdict = "pass" | "fail" | "none" | "skipped";

export interface Judged {
  readonly ratio: number | undefined;
  readonly verdict: Verdict;
}

export interface Evidence {
  readonly bar: Bar | undefined;
  readonly by: Percentile;
  readonly ours: Summary;
  readonly floor: Summary | undefined;
}

export function judge({ bar, by, ours, floor }: Evidence): Judged {
  const ratio = floor === undefined ? undefined : ours[by] / floor[by];
  if (bar === undefined) return { ratio, verdict: "none" };
  return { ratio, verdict: holds(bar, ours[by], floor?.[by]) ? "pass" : "fail" };
}

function holds({ kind, value }: Bar, ours: number, floor: number | undefined): boolean {
  if (kind === "below") return ours < value;
  if (floor === undefined) throw new Error("a bar that compares needs a floor");
  switch (kind) {
    case "at_most_ratio":
      return ours / floor <= value;
    case "at_least_ratio":
      return ours / floor >= value;
    case "at_most_added":
      return ours - floor <= value;
  }
}

/** All that a row must show, in words. */
export function describeBars({ bar, unit, growth, rule }: Barred): string {
  return [bar && describeBar(bar, unit), growth && "n log n", rule].filter((text) => text !== undefined).join(", ");
}

interface Barred {
  readonly bar?: Bar;
  readonly unit: string;
  readonly growth?: GrowthLaw;
  readonly rule?: string;
}

function describeBar(bar: Bar, unit: string): string {
  switch (bar.kind) {
    case "at_most_ratio":
      return `<= ${bar.value} x`;
    case "at_least_ratio":
      return `>= ${bar.value} x`;
    case "at_most_added":
      return `<= floor + ${bar.value} ${unit}`;
    case "below":
      return `< ${bar.value} ${unit}`;
  }
}
