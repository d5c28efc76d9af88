import type { RowResult } from "../run/row-result.ts";
import { cellsOf, HEADINGS } from "./cell.ts";

/** Of the line below the headings. */
const LEAST_MARKDOWN_WIDTH = 3;

/** The first columns and the last ones are words, the rest figures. */
const isText = (column: number): boolean => column <= 1 || column >= 10;

/** Cells of equal width in each column, at least `least` wide. */
function padded(lines: readonly (readonly string[])[], least: number): readonly (readonly string[])[] {
  const widths = HEADINGS.map((_, column) => Math.max(least, ...lines.map((cells) => cells[column]?.length ?? 0)));
  const pad = (cell: string, column: number): string =>
    isText(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  return lines.map((cells) => cells.map(pad));
}

/** The table as text for a terminal, with what there is to say about rows below it. */
export function formatTable(results: readonly RowResult[]): string {
  const lines = padded([HEADINGS, ...results.map(cellsOf)], 0).map((cells) => cells.join("  ").trimEnd());
  return [...lines, "", ...remarksOf(results)].join("\n").trimEnd();
}

/** The same in Markdown, for the documents, as their formatter wants it. */
export function formatMarkdown(results: readonly RowResult[]): string {
  const [heading = [], ...lines] = padded([HEADINGS, ...results.map(cellsOf)], LEAST_MARKDOWN_WIDTH);
  const rule = heading.map((cell, column) =>
    isText(column) ? "-".repeat(cell.length) : `${"-".repeat(cell.length - 1)}:`,
  );
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const remarks = remarksOf(results).map((remark) => `- ${remark}`);
  return [...[heading, rule, ...lines].map(line), "", ...remarks].join("\n").trimEnd();
}

function remarksOf(results: readonly RowResult[]): readonly string[] {
  return results.flatMap(({ id, notes, failures, growth }) => [
    ...failures.map((text) => `${id}: FAIL: ${text}`),
    ...(growth?.verdict === "fail"
      ? [`${id}: FAIL: it grows like n^${growth.exponent.toFixed(2)}, n log n like n^${growth.limit.toFixed(2)}`]
      : []),
    ...notes.map((text) => `${id}: ${text}`),
  ]);
}
