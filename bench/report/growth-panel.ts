import type { RowResult } from "../run/row-result.ts";
import type { Point } from "../statistics.ts";
import { figure } from "./cell.ts";
import { line, path, text } from "./svg.ts";

export const PANEL = { width: 300, height: 210 } as const;
const MARGIN = { left: 70, right: 14, top: 34, bottom: 40 } as const;

/** One panel: cost against work, both axes by powers, with n log n through the first point. */
export function growthPanel(
  { id, unit, growth }: RowResult,
  [left, top]: readonly [number, number],
): readonly string[] {
  if (growth === undefined) return [];
  const { points, of, things, exponent } = growth;
  const [first] = points;
  if (first === undefined) return [];
  const limit = points.map(({ x }) => ({ x, y: limitAt(x, first, of) }));
  const [minX, maxX] = rangeOf(points.map(({ x }) => x));
  const [minY, maxY] = rangeOf([...points, ...limit].map(({ y }) => y));
  const place = ({ x, y }: Point): readonly [number, number] => [
    left + MARGIN.left + share(x, minX, maxX) * (PANEL.width - MARGIN.left - MARGIN.right),
    top + PANEL.height - MARGIN.bottom - share(y, minY, maxY) * (PANEL.height - MARGIN.top - MARGIN.bottom),
  ];
  const [right, floor] = [left + PANEL.width - MARGIN.right, top + PANEL.height - MARGIN.bottom];
  return [
    text(left + 8, top + 16, `${id}: total n^${exponent.toFixed(2)}`, { className: "t" }),
    line([left + MARGIN.left, floor], [right, floor], "axis"),
    line([left + MARGIN.left, top + MARGIN.top], [left + MARGIN.left, floor], "axis"),
    text(left + MARGIN.left - 4, floor, figure(minY), { anchor: "end", className: "s" }),
    text(left + MARGIN.left - 4, top + MARGIN.top + 8, `${figure(maxY)} ${unit}`, { anchor: "end", className: "s" }),
    text(left + MARGIN.left, floor + 14, figure(minX), { className: "s" }),
    text(right, floor + 14, `${figure(maxX)} ${things}`, { anchor: "end", className: "s" }),
    path(limit.map(place), "limit"),
    path(points.map(place), "curve"),
  ];
}

/** What n log n in all allows at x, given the first point; of one of n operations it is the n-th part. */
function limitAt(x: number, first: Point, of: string): number {
  const logs = Math.log2(Math.max(2, x)) / Math.log2(Math.max(2, first.x));
  return of === "each" ? first.y * logs : first.y * (x / first.x) * logs;
}

const rangeOf = (values: readonly number[]): readonly [number, number] => [Math.min(...values), Math.max(...values)];

const share = (value: number, from: number, to: number): number =>
  to === from ? 0.5 : Math.log(value / from) / Math.log(to / from);
