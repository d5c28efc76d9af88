import { formatSize } from "../format/size.ts";
import type { Output } from "../output.ts";
import { printable, printableText } from "../printable.ts";
import type { Color } from "../style.ts";
import type { ChangeView, ChangeWord } from "./change-view.ts";
import { formatSummary } from "./diff-summary.ts";

const LETTERS: Readonly<Record<ChangeWord, readonly [letter: string, color: Color]>> = {
  added: ["A", "green"],
  removed: ["D", "red"],
  modified: ["M", "yellow"],
  renamed: ["R", "cyan"],
  type_changed: ["T", "magenta"],
};

type Style = Pick<Output, "paint" | "to">;

/** One line for each difference, its text below it if there is any, and the sum of all at the end. */
export function formatDiff(
  changes: readonly ChangeView[],
  { style, text }: { readonly style: Style; readonly text: "with text" | "without text" },
): string {
  if (changes.length === 0) return "no differences\n";
  const parts = changes.map((change) => `${formatChange(change, style)}${formatText(change, style)}`);
  return `${parts.join("")}${formatSummary(changes, text)}`;
}

function formatChange(change: ChangeView, { paint }: Style): string {
  const [letter, color] = LETTERS[change.kind];
  const path = printable(change.path);
  const shown = change.oldPath === null ? path : `${printable(change.oldPath)} -> ${path}`;
  const remarks = [sizeOf(change), change.binary ? "binary" : ""].filter((remark) => remark !== "");
  return `${paint(color, letter)}  ${shown}  (${remarks.join(", ")})\n`;
}

function sizeOf({ kind, oldSizeBytes, newSizeBytes }: ChangeView): string {
  if (kind === "added") return `+${formatSize(newSizeBytes)}`;
  if (kind === "removed") return `-${formatSize(oldSizeBytes)}`;
  if (oldSizeBytes === newSizeBytes) return formatSize(newSizeBytes);
  return `${formatSize(oldSizeBytes)} -> ${formatSize(newSizeBytes)}`;
}

const CUT = "(the text is too long for one answer: --max-text allows more, --path asks for less)\n";

function formatText({ unifiedDiff, diffTruncated }: ChangeView, style: Style): string {
  const cut = diffTruncated ? CUT : "";
  if (unifiedDiff === null) return cut;
  const whole = unifiedDiff.endsWith("\n") ? unifiedDiff : `${unifiedDiff}\n`;
  // Elsewhere it may be read by a program that needs every byte.
  return `${paintText(style.to === "terminal" ? printableText(whole) : whole, style)}${cut}`;
}

const LINE_COLORS: readonly (readonly [start: string, color: Color])[] = [
  ["@@", "cyan"],
  ["+", "green"],
  ["-", "red"],
];

function paintText(unified: string, { paint }: Style): string {
  return unified
    .split("\n")
    .map((line) => {
      const color = LINE_COLORS.find(([start]) => line.startsWith(start))?.[1];
      return color === undefined ? line : paint(color, line);
    })
    .join("\n");
}
