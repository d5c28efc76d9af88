import type { LineRange } from "./line-search.ts";

/** Characters of a line that are shown. */
const MAX_SHOWN = 500;

/** Matches of one file as lines of a report: `path:12:text`, context as `path-11-text`, `--` between parts. */
export function showMatches(
  text: string,
  matches: readonly LineRange[],
  {
    path,
    firstLine,
    contextLines,
  }: { readonly path: string; readonly firstLine: number; readonly contextLines: number },
): readonly string[] {
  const lines = numberLines(text, matches, firstLine);
  if (contextLines === 0) return matches.map((match, index) => `${path}:${lines[index] ?? 0}:${cut(text, match)}`);
  const shown: string[] = [];
  let last = 0;
  for (const [index, match] of matches.entries()) {
    const line = lines[index] ?? 0;
    const add = (one: NumberedLine): void => {
      if (one.line <= last) return;
      if (shown.length > 0 && one.line > last + 1) shown.push("--");
      const mark = one.line === line ? ":" : "-";
      shown.push(`${path}${mark}${one.line}${mark}${cut(text, one)}`);
      last = one.line;
    };
    const nextLine = lines[index + 1] ?? Infinity;
    for (const one of linesBefore(text, { ...match, line }, contextLines)) add(one);
    add({ ...match, line });
    for (const one of linesAfter(text, { ...match, line }, contextLines)) if (one.line < nextLine) add(one);
  }
  return shown;
}

interface NumberedLine extends LineRange {
  readonly line: number;
}

function numberLines(text: string, matches: readonly LineRange[], firstLine: number): readonly number[] {
  let line = firstLine;
  let at = 0;
  return matches.map(({ start }) => {
    for (let end = text.indexOf("\n", at); end >= 0 && end < start; end = text.indexOf("\n", at)) {
      line += 1;
      at = end + 1;
    }
    return line;
  });
}

function linesBefore(text: string, from: NumberedLine, count: number): readonly NumberedLine[] {
  const lines: NumberedLine[] = [];
  let { start, line } = from;
  while (lines.length < count && start > 0) {
    const end = start - 1;
    start = end === 0 ? 0 : text.lastIndexOf("\n", end - 1) + 1;
    line -= 1;
    lines.unshift({ start, end, line });
  }
  return lines;
}

function linesAfter(text: string, from: NumberedLine, count: number): readonly NumberedLine[] {
  const lines: NumberedLine[] = [];
  let at = text.indexOf("\n", from.end);
  let { line } = from;
  while (lines.length < count && at >= 0 && at + 1 < text.length) {
    const start = at + 1;
    at = text.indexOf("\n", start);
    line += 1;
    lines.push({ start, end: at < 0 ? text.length : at, line });
  }
  return lines;
}

function cut(text: string, { start, end }: LineRange): string {
  const line = text.slice(start, Math.min(end, start + MAX_SHOWN));
  return end - start > MAX_SHOWN ? `${line}... [${end - start} characters]` : line.replace(/\r$/, "");
}
