import type { Summary } from "../statistics.ts";
import type { RowResult } from "../run/row-result.ts";

export const HEADINGS = [
  "row",
  "unit",
  "n",
  "p50",
  "p95",
  "p99",
  "floor p50",
  "p95",
  "p99",
  "ratio",
  "bar",
  "",
] as const;

/** Three digits that count. */
export function figure(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return "";
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
  return Math.abs(value) >= 10 ? value.toFixed(1) : Math.abs(value) >= 1 ? value.toFixed(2) : value.toFixed(3);
}

const three = (summary: Summary | undefined): readonly string[] =>
  [summary?.p50, summary?.p95, summary?.p99].map(figure);

/** One line of the table, under `HEADINGS`. */
export function cellsOf(result: RowResult): readonly string[] {
  const { id, unit, ours, floor, ratio, by, bar, verdict, growth } = result;
  const exponent = growth === undefined ? "" : `n^${growth.exponent.toFixed(2)}`;
  const compared = ratio === undefined ? exponent : `${figure(ratio)}${by === "p50" ? "" : ` (${by})`}`;
  return [
    id,
    unit,
    ours === undefined ? "" : String(ours.n),
    ...three(ours),
    ...three(floor),
    compared,
    bar,
    SHOWN[verdict],
  ];
}

const SHOWN = { pass: "pass", fail: "FAIL", none: "", skipped: "skipped" } as const;
