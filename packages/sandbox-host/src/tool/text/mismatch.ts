import { isBinary } from "./file-kind.ts";

const SMALL_FILE_LINES = 20;
const AROUND_LINES = 2;
const MAX_SHOWN_LINES = 40;
const MAX_SHOWN_CHARACTERS = 200;
/** A sought text is compared by so many of its lines. */
const MAX_COMPARED_LINES = 50;
const NEW_LINE = 10;

/** The line of an offset in a text, counted from 1. */
export function lineOf(bytes: Buffer, offset: number): number {
  let line = 1;
  for (let at = bytes.indexOf(NEW_LINE); at >= 0 && at < offset; at = bytes.indexOf(NEW_LINE, at + 1)) line += 1;
  return line;
}

/** Why a text was not found, so that the next attempt can be right: the likely reason, and what is there instead. */
export function explainMismatch(
  bytes: Buffer,
  { sought, name }: { readonly sought: string; readonly name: string },
): string {
  const missing = `old_string is not in ${name}.`;
  if (isBinary(bytes)) return `${missing} It is not a text file.`;
  const text = bytes.toString("utf8");
  if (text === "") return `${missing} The file is empty; use write_file.`;
  const reason = likelyReason(text, sought);
  const lines = text.split("\n").map((line) => line.replace(/\r$/, ""));
  if (lines.at(-1) === "") lines.pop();
  if (lines.length <= SMALL_FILE_LINES)
    return `${missing}${reason} The whole file:\n${numbered(lines, { first: 0, count: lines.length })}`;
  const soughtLines = sought.split("\n").map((line) => line.trim());
  const best = bestMatch(lines, soughtLines);
  if (best === null) return `${missing}${reason} No line of it is like the text; read the file again.`;
  const first = Math.max(0, best.line - AROUND_LINES);
  const count = Math.min(soughtLines.length + 2 * AROUND_LINES, MAX_SHOWN_LINES);
  const same = `${best.matching} of ${soughtLines.length} lines are the same but for spaces`;
  const how = best.matching > 0 ? same : "its first line is like the text";
  return `${missing}${reason} The nearest match is at line ${best.line + 1} (${how}):\n${numbered(lines, { first, count })}`;
}

function likelyReason(text: string, sought: string): string {
  if (text.includes(sought.replaceAll(/\r?\n/g, "\r\n")))
    return " The file's line ends are CRLF (\\r\\n): write them so.";
  const folded = (from: string): string => from.replaceAll(/[ \t]+/g, " ").replaceAll(/ ?\r?\n ?/g, "\n");
  if (folded(text).includes(folded(sought).trim())) return " It differs only in spaces, tabs or indentation.";
  if (text.toLowerCase().includes(sought.toLowerCase())) return " It differs only in upper and lower case.";
  return "";
}

/** The line from which on most lines of the sought text match, spaces at their ends aside; else the line most like its first. */
function bestMatch(
  lines: readonly string[],
  sought: readonly string[],
): { readonly line: number; readonly matching: number } | null {
  const wanted = sought.slice(0, MAX_COMPARED_LINES);
  const votes = new Map<number, number>();
  const offsets = new Map<string, number[]>();
  for (const [index, line] of wanted.entries()) {
    if (line !== "") offsets.set(line, [...(offsets.get(line) ?? []), index]);
  }
  for (const [index, line] of lines.entries()) {
    for (const offset of offsets.get(line.trim()) ?? []) {
      const start = Math.max(0, index - offset);
      votes.set(start, (votes.get(start) ?? 0) + 1);
    }
  }
  const best = [...votes].toSorted((a, b) => b[1] - a[1] || a[0] - b[0])[0];
  if (best !== undefined) return { line: best[0], matching: best[1] };
  const alike = mostAlike(lines, wanted.find((line) => line !== "") ?? "");
  return alike === null ? null : { line: alike, matching: 0 };
}

/** The line that shares most words with the sought one; at least half of them. */
function mostAlike(lines: readonly string[], sought: string): number | null {
  const words = new Set(wordsOf(sought));
  if (words.size === 0) return null;
  let best: { readonly index: number; readonly shared: number } | null = null;
  for (const [index, line] of lines.entries()) {
    const shared = new Set(wordsOf(line).filter((word) => words.has(word))).size;
    if (shared * 2 >= words.size && shared > (best?.shared ?? 0)) best = { index, shared };
  }
  return best?.index ?? null;
}

function wordsOf(line: string): readonly string[] {
  return line.slice(0, 1000).match(/\w+/g) ?? [];
}

function numbered(
  lines: readonly string[],
  { first, count }: { readonly first: number; readonly count: number },
): string {
  return lines
    .slice(first, first + count)
    .map((line, index) => `${String(first + index + 1).padStart(6)}\t${line.slice(0, MAX_SHOWN_CHARACTERS)}`)
    .join("\n");
}
