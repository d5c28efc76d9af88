import { formatSize } from "../format/size.ts";
import type { ChangeView, ChangeWord } from "./change-view.ts";

/** Differences in numbers. Lines are those of the text diffs that are there. */
export interface DiffSummary {
  readonly added: number;
  readonly removed: number;
  readonly modified: number;
  readonly renamed: number;
  readonly typeChanged: number;
  /** How much more or less the files take. */
  readonly sizeBytes: number;
  readonly linesAdded: number;
  readonly linesRemoved: number;
}

export function summarize(changes: readonly ChangeView[]): DiffSummary {
  const count = (word: ChangeWord): number => changes.filter(({ kind }) => kind === word).length;
  const lines = changes.map(({ unifiedDiff }) => countLines(unifiedDiff ?? ""));
  return {
    added: count("added"),
    removed: count("removed"),
    modified: count("modified"),
    renamed: count("renamed"),
    typeChanged: count("type_changed"),
    sizeBytes: changes.reduce((sum, { oldSizeBytes, newSizeBytes }) => sum + newSizeBytes - oldSizeBytes, 0),
    linesAdded: lines.reduce((sum, { added }) => sum + added, 0),
    linesRemoved: lines.reduce((sum, { removed }) => sum + removed, 0),
  };
}

/** One line: `4 changes: 1 added, 3 modified; +1.2 KiB; +12 -3 lines`. */
export function formatSummary(changes: readonly ChangeView[], text: "with text" | "without text"): string {
  const summary = summarize(changes);
  const kinds: readonly (readonly [number, string])[] = [
    [summary.added, "added"],
    [summary.removed, "removed"],
    [summary.modified, "modified"],
    [summary.renamed, "renamed"],
    [summary.typeChanged, "of another type"],
  ];
  const counted = kinds.filter(([count]) => count > 0).map(([count, word]) => `${String(count)} ${word}`);
  const size = `${summary.sizeBytes < 0 ? "-" : "+"}${formatSize(Math.abs(summary.sizeBytes))}`;
  const lines = text === "with text" ? `; +${String(summary.linesAdded)} -${String(summary.linesRemoved)} lines` : "";
  return `${String(changes.length)} ${changes.length === 1 ? "change" : "changes"}: ${counted.join(", ")}; ${size}${lines}\n`;
}

const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;

/** Goes by the lengths in the hunks' heads: a removed line may begin with `--` and look like the head of a file. */
function countLines(unified: string): { readonly added: number; readonly removed: number } {
  let added = 0;
  let removed = 0;
  let oldLeft = 0;
  let newLeft = 0;
  for (const line of unified.split("\n")) {
    const hunk = oldLeft <= 0 && newLeft <= 0 ? HUNK.exec(line) : null;
    if (hunk !== null) {
      oldLeft = Number(hunk[1] ?? "1");
      newLeft = Number(hunk[2] ?? "1");
    } else if (line.startsWith("+") && newLeft > 0) {
      added += 1;
      newLeft -= 1;
    } else if (line.startsWith("-") && oldLeft > 0) {
      removed += 1;
      oldLeft -= 1;
    } else if (line.startsWith(" ")) {
      oldLeft -= 1;
      newLeft -= 1;
    }
  }
  return { added, removed };
}
