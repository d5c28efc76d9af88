import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff";
import { showPath } from "./byte-path.ts";
import type { Difference, Side, Trees } from "./comparison.ts";
import { readAt } from "./content.ts";
import type { Tree } from "./tree.ts";

/** What text diffs may cost. */
export interface TextLimits {
  /** Of all diffs together. */
  readonly maxBytes: number;
  readonly maxFiles: number;
  /** Of each of the two files. */
  readonly maxFileBytes: number;
  /** For all diffs together; when it is over, the rest goes without. */
  readonly budgetMs: number;
}

/** The text of one difference. */
export interface Text {
  readonly binary: boolean;
  readonly unifiedDiff: string;
  readonly diffTruncated: boolean;
}

export const NO_TEXT: Text = { binary: false, unifiedDiff: "", diffTruncated: false };
const BINARY: Text = { ...NO_TEXT, binary: true };
const LEFT_OUT: Text = { ...NO_TEXT, diffTruncated: true };

const CONTEXT_LINES = 3;
/** Two files that have little in common take the square of their lines, in time and in memory. */
const MAX_EDITS = 4000;
const MAX_FILE_MS = 2000;
/** How much of a file is read to find out whether it is text. */
const SNIFF_BYTES = 8 * 1024;

/**
 * Writes unified diffs, one difference after the other, until a limit is reached. A diff is whole or left out: half a
 * diff applies to nothing. `nowMs` never goes back.
 */
export function createTextDiffs(
  trees: Trees,
  limits: TextLimits,
  nowMs: () => number,
): (difference: Difference) => Text {
  const endMs = nowMs() + limits.budgetMs;
  let leftBytes = limits.maxBytes;
  let leftFiles = limits.maxFiles;
  const read = (tree: Tree, side: Side | null): FileText =>
    side === null ? { kind: "text", text: "" } : readText(tree, side, limits.maxFileBytes);

  const isOver = (): boolean => leftFiles === 0 || leftBytes === 0 || nowMs() >= endMs;
  const write = (difference: Difference, before: FileText, after: FileText): Text => {
    if (before.kind === "binary" || after.kind === "binary") return BINARY;
    if (before.kind === "large" || after.kind === "large") return LEFT_OUT;
    if (before.text === after.text) return NO_TEXT;
    const texts = { before: before.text, after: after.text };
    const unifiedDiff = unify(difference, texts, Math.min(MAX_FILE_MS, endMs - nowMs()));
    const bytes = Buffer.byteLength(unifiedDiff ?? "");
    if (unifiedDiff === undefined || bytes > leftBytes) return LEFT_OUT;
    leftBytes -= bytes;
    return { ...NO_TEXT, unifiedDiff };
  };

  return (difference) => {
    if (!isAboutFiles(difference)) return NO_TEXT;
    if (isOver()) return LEFT_OUT;
    leftFiles -= 1;
    return write(difference, read(trees.from, difference.from), read(trees.to, difference.to));
  };
}

/** Undefined if it takes too long. */
function unify(
  { from, to }: Difference,
  { before, after }: { readonly before: string; readonly after: string },
  timeoutMs: number,
): string | undefined {
  return createTwoFilesPatch(nameOf("a", from), nameOf("b", to), before, after, undefined, undefined, {
    context: CONTEXT_LINES,
    headerOptions: FILE_HEADERS_ONLY,
    maxEditLength: MAX_EDITS,
    timeout: Math.max(1, timeoutMs),
  });
}

/** A file on each side that there is. */
function isAboutFiles({ from, to }: Difference): boolean {
  return (from === null || from.entry.type === "file") && (to === null || to.entry.type === "file");
}

function nameOf(prefix: "a" | "b", side: Side | null): string {
  return side === null ? "/dev/null" : `${prefix}${showPath(side.path)}`;
}

/** The content of a file, as far as it is text and not too large. */
type FileText =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "binary" }
  | { readonly kind: "large" };

/** Reads a file. One with a NUL near its beginning, or that is no UTF-8, is binary. */
function readText(tree: Tree, { path, entry }: Side, maxBytes: number): FileText {
  if (entry.sizeBytes === 0) return { kind: "text", text: "" };
  using file = tree.open(path);
  const read = (bytes: number): Buffer => {
    const content = Buffer.alloc(Math.min(bytes, entry.sizeBytes));
    return content.subarray(0, readAt(file.descriptor, content, 0));
  };
  const start = read(SNIFF_BYTES);
  if (start.includes(0) || decode(start, "beginning") === null) return { kind: "binary" };
  if (entry.sizeBytes > maxBytes) return { kind: "large" };
  const text = decode(read(maxBytes), "whole");
  return text === null ? { kind: "binary" } : { kind: "text", text };
}

/** Null if it is no UTF-8. The last character of a beginning may be cut. */
function decode(bytes: Buffer, part: "beginning" | "whole"): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: part === "beginning" });
  } catch {
    return null;
  }
}
