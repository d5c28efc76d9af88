import type { CallTree } from "./call-tree.ts";

/** The calls of one process. */
export interface Flame {
  readonly title: string;
  readonly tree: CallTree;
}

const WIDTH = 1200;
const MARGIN = 8;
const ROW_HEIGHT = 15;
const HEAD_HEIGHT = 28;
const CHARACTER_WIDTH = 6.1;
/** What is narrower is left out, as a share of the process' time. */
const MIN_SHARE = 0.002;
const MAX_DEPTH = 64;
const STYLE = `svg{background:#fff}text{font:10px monospace;fill:#222}.h{font:bold 13px sans-serif}rect{stroke:#fff;stroke-width:.5}
.o{fill:#f4a261}.l{fill:#e9d8a6}.n{fill:#a8c5da}.g{fill:#cdb4db}`;

const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const at = (value: number): string => String(Math.round(value * 10) / 10);
const ms = (us: number): string => `${(us / 1000).toFixed(us < 10_000 ? 1 : 0)} ms`;

/** Flame graphs below each other: callers above, what they called below them, as wide as it took. */
export function drawFlames(heading: string, flames: readonly Flame[]): string {
  const elements: string[] = [`<text x="${MARGIN}" y="18" class="h">${escape(heading)}</text>`];
  let top = HEAD_HEIGHT;
  for (const { title, tree } of flames) {
    const head = `${title}: ${ms(tree.totalUs)} of work`;
    elements.push(`<text x="${MARGIN}" y="${at(top + 16)}" class="h">${escape(head)}</text>`);
    top += HEAD_HEIGHT - 4;
    const { cells, depth } = layOut(tree);
    for (const cell of cells) elements.push(draw(cell, { top, totalUs: tree.totalUs }));
    top += depth * ROW_HEIGHT + MARGIN;
  }
  const size = `width="${WIDTH}" height="${at(top)}" viewBox="0 0 ${WIDTH} ${at(top)}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size}>`,
    `<style>${STYLE}</style>`,
    ...elements,
    "</svg>",
    "",
  ].join("\n");
}

interface Cell {
  readonly name: string;
  readonly startUs: number;
  readonly totalUs: number;
  readonly depth: number;
}

function layOut(tree: CallTree): { readonly cells: readonly Cell[]; readonly depth: number } {
  const minUs = Math.max(1, tree.totalUs * MIN_SHARE);
  const cells: Cell[] = [];
  const place = (children: readonly CallTree[], startUs: number, depth: number): void => {
    let nextUs = startUs;
    for (const child of children) {
      if (child.totalUs < minUs || depth >= MAX_DEPTH) continue;
      cells.push({ name: child.name, startUs: nextUs, totalUs: child.totalUs, depth });
      place(child.children, nextUs, depth + 1);
      nextUs += child.totalUs;
    }
  };
  place(tree.children, 0, 0);
  return { cells, depth: cells.reduce((deepest, { depth }) => Math.max(deepest, depth + 1), 0) };
}

function draw(
  { name, startUs, totalUs, depth }: Cell,
  panel: { readonly top: number; readonly totalUs: number },
): string {
  const scale = (WIDTH - 2 * MARGIN) / panel.totalUs;
  const x = MARGIN + startUs * scale;
  const y = panel.top + depth * ROW_HEIGHT;
  const width = totalUs * scale;
  const letters = Math.floor((width - 4) / CHARACTER_WIDTH);
  const share = ((100 * totalUs) / panel.totalUs).toFixed(1);
  const rect = `<rect x="${at(x)}" y="${at(y)}" width="${at(width)}" height="${ROW_HEIGHT}" class="${kindOf(name)}"/>`;
  const label = letters < 3 ? "" : `<text x="${at(x + 2)}" y="${at(y + 11)}">${escape(name.slice(0, letters))}</text>`;
  return `<g><title>${escape(name)} ${ms(totalUs)} ${share} %</title>${rect}${label}</g>`;
}

/** Own code, libraries, Node, and what V8 does beside. */
function kindOf(name: string): "o" | "l" | "n" | "g" {
  if (name.startsWith("(") && !name.startsWith("(anonymous)")) return "g";
  const place = name.split(" ").pop() ?? "";
  if (/^(core|client|orchestrator|sandbox-host|protocol)\//.test(place)) return "o";
  return /^@|\.(m?js|ts)$/.test(place) && place.includes("/") ? "l" : "n";
}
