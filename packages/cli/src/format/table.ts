import { printable } from "../printable.ts";
import { type Color, PLAIN, type Style } from "../style.ts";
import { cutToWidth, displayWidth, padToWidth } from "./display-width.ts";

export interface TableLook {
  readonly style?: Style;
  /** Columns of the terminal; undefined if there is none, or they are not known. */
  readonly columns?: number | undefined;
  /** Whether the last cell is prose that may be cut to fit into the columns; numbers and names are not. */
  readonly lastCell?: "cut" | "whole";
  /** The colour of a cell, by what it says. */
  readonly colors?: Readonly<Record<string, Color>>;
}

const GAP = "  ";
/** Less than this of a last cell says nothing; the line may wrap instead. */
const LEAST_LAST_WIDTH = 10;

/**
 * Rows under a heading, in columns as wide on a terminal as their widest cell, two spaces apart, without trailing spaces.
 * Cells come from callers that made the sandboxes: nothing in them acts upon the terminal or ends the line.
 */
export function formatTable(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  { style = PLAIN, columns, lastCell = "whole", colors = {} }: TableLook = {},
): string {
  const lines = [heading, ...rows].map((cells) => cells.map(printable));
  const last = heading.length - 1;
  const widths = heading.map((_, column) => Math.max(...lines.map((cells) => displayWidth(cells[column] ?? ""))));
  const lastStart = widths.slice(0, last).reduce((sum, width) => sum + width + GAP.length, 0);
  const lastWidth =
    columns === undefined || lastCell === "whole" ? Infinity : Math.max(LEAST_LAST_WIDTH, columns - lastStart);
  const lay = (cells: readonly string[], paint: (cell: string) => string): string => {
    const filled = cells.findLastIndex((cell) => cell !== "");
    return cells
      .slice(0, filled + 1)
      .map((cell, column) => {
        const shown = column === last ? cutToWidth(cell, { width: lastWidth, mark: "..." }) : cell;
        const padding = column === filled ? "" : padToWidth(shown, widths[column] ?? 0).slice(shown.length);
        return `${shown === "" ? "" : paint(shown)}${padding}`;
      })
      .join(GAP);
  };
  const paintCell = (cell: string): string => {
    const color = Object.hasOwn(colors, cell) ? colors[cell] : undefined;
    return color === undefined ? cell : style.paint(color, cell);
  };
  return lines.map((cells, index) => `${lay(cells, index === 0 ? style.bold : paintCell)}\n`).join("");
}
