import type { GrowthLaw } from "./growth.ts";
import type { Percentile, Summary } from "./statistics.ts";

/**
 * What a row must show. A ratio is to the floor of the same run, in the same percentile; `at_least_ratio` is for rates,
 * where more is better; `below` is a bound in the row's own unit.
 */
export interface Bar {
  readonly kind: "at_most_ratio" | "at_least_ratio" | "below";
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
  if (bar.kind === "below") return { ratio, verdict: ours[by] < bar.value ? "pass" : "fail" };
  if (ratio === undefined) throw new Error("a bar that is a ratio needs a floor");
  const holds = bar.kind === "at_most_ratio" ? ratio <= bar.value : ratio >= bar.value;
  return { ratio, verdict: holds ? "pass" : "fail" };
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
  if (bar.kind === "below") return `< ${bar.value} ${unit}`;
  return bar.kind === "at_most_ratio" ? `<= ${bar.value} x` : `>= ${bar.value} x`;
}
