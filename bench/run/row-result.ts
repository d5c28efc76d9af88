import { describeBars, judge, type Verdict } from "../bar.ts";
import { fitGrowth, type GrowthFit } from "../growth.ts";
import type { Measured, Row } from "../row.ts";
import { type Percentile, type Point, type Summary, summarize } from "../statistics.ts";

/** A line of the results, as it is stored. */
export interface RowResult {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  readonly by: Percentile;
  readonly bar: string;
  readonly verdict: Verdict;
  readonly ours?: Summary;
  readonly floorName?: string;
  readonly floor?: Summary;
  readonly ratio?: number;
  readonly growth?: GrowthFit & { readonly things: string; readonly of: string; readonly points: readonly Point[] };
  readonly notes: readonly string[];
  readonly failures: readonly string[];
}

const describe = (row: Row) => ({
  id: row.id,
  title: row.title,
  unit: row.unit,
  by: row.by ?? "p50",
  bar: describeBars(row),
});

export function toResult(row: Row, measured: Measured): RowResult {
  const { failures = [], unjudged } = measured;
  const notes = [...(measured.notes ?? []), ...(unjudged === undefined ? [] : [unjudged])];
  const ours = summarize(measured.ours);
  const floor = measured.floor === undefined ? undefined : summarize(measured.floor);
  const { ratio, verdict } = judge({ bar: row.bar, by: row.by ?? "p50", ours, floor });
  const growth = growthOf(row, measured);
  return {
    ...describe(row),
    verdict: worst(verdict, growth?.verdict ?? "none", ruled(row, measured)),
    ours,
    ...(floor && { floor }),
    ...(row.floor && { floorName: row.floor }),
    ...(ratio !== undefined && { ratio }),
    ...(growth && { growth }),
    notes,
    failures,
  };
}

function growthOf({ growth }: Row, { points }: Measured): RowResult["growth"] {
  if (growth === undefined || points === undefined) return undefined;
  return { ...fitGrowth(growth, points), ...growth, points };
}

export function toSkipped(row: Row, why: string): RowResult {
  return { ...describe(row), verdict: "skipped", notes: [why], failures: [] };
}

export function toFailed(row: Row, thrown: unknown): RowResult {
  const why = thrown instanceof Error ? thrown.message : String(thrown);
  return { ...describe(row), verdict: "fail", notes: [], failures: [`it could not be measured: ${why}`] };
}

function ruled({ rule }: Row, { failures = [], unjudged }: Measured): Verdict {
  if (failures.length > 0) return "fail";
  return rule === undefined || unjudged !== undefined ? "none" : "pass";
}

function worst(...verdicts: readonly Verdict[]): Verdict {
  return (["fail", "pass"] as const).find((verdict) => verdicts.includes(verdict)) ?? "none";
}
