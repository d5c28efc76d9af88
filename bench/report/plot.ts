import type { RowResult } from "../run/row-result.ts";
import { figure } from "./cell.ts";
import { growthPanel, PANEL } from "./growth-panel.ts";
import { box, drawing, line, text } from "./svg.ts";

const WIDTH = 900;
const LABEL_WIDTH = 200;
const VALUE_WIDTH = 130;
const LINE_HEIGHT = 22;
const TOP = 60;
/** The scale of ratios, by powers of ten. */
const [LEAST, MOST] = [0.01, 10];

const xOf = (ratio: number): number => {
  const share = Math.log10(Math.min(MOST, Math.max(LEAST, ratio)) / LEAST) / Math.log10(MOST / LEAST);
  return LABEL_WIDTH + share * (WIDTH - LABEL_WIDTH - VALUE_WIDTH);
};

/** Ratios to the floors as bars on a scale of powers of ten, and below them cost against work. */
export function plot(results: readonly RowResult[]): string {
  const ratios = results.filter(({ ratio }) => ratio !== undefined);
  const grown = results.filter(({ growth }) => growth !== undefined);
  const bottom = TOP + ratios.length * LINE_HEIGHT;
  const scale = [0.01, 0.1, 1, 10].flatMap((ratio) => [
    line([xOf(ratio), TOP - 6], [xOf(ratio), bottom], ratio === 1 ? "floor" : "axis"),
    text(xOf(ratio), TOP - 12, ratio === 1 ? "1 x floor" : `${ratio} x`, { anchor: "middle", className: "s" }),
  ]);
  const perLine = Math.floor(WIDTH / PANEL.width);
  const panels = grown.map((result, index) =>
    growthPanel(result, [(index % perLine) * PANEL.width, bottom + 40 + Math.floor(index / perLine) * PANEL.height]),
  );
  const height = bottom + 40 + Math.ceil(grown.length / perLine) * PANEL.height;
  const title = "Turnbox against the bare tools, in one run (the black mark is the bar)";
  return drawing(WIDTH, height, [
    text(10, 24, title, { className: "h" }),
    ...scale,
    ...ratios.map(ratioBar),
    ...panels.flat(),
  ]);
}

function ratioBar(result: RowResult, index: number): string {
  const { id, ratio = 1, bar, verdict, by } = result;
  const y = TOP + index * LINE_HEIGHT;
  const [from, to] = [Math.min(xOf(ratio), xOf(1)), Math.max(xOf(ratio), xOf(1))];
  const limit = Number(/^[<>]= ([\d.]+) x/.exec(bar)?.[1] ?? Number.NaN);
  return [
    text(LABEL_WIDTH - 8, y + 14, id, { anchor: "end" }),
    box({ x: from, y: y + 3, width: to - from, height: LINE_HEIGHT - 8 }, verdict === "skipped" ? "none" : verdict),
    ...(Number.isNaN(limit) ? [] : [line([xOf(limit), y + 1], [xOf(limit), y + LINE_HEIGHT - 3], "bar")]),
    text(WIDTH - VALUE_WIDTH + 10, y + 14, `${figure(ratio)} x ${by} ${verdict === "none" ? "" : verdict}`.trimEnd(), {
      className: "s",
    }),
  ].join("\n");
}
