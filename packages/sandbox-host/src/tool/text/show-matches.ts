import type { LinePlace } from "./line-search.ts";

/** Characters of a line that are shown. */
const MAX_SHOWN = 500;

/** Matches of one file as lines of a report: `path:12:text`, context as `path-11-text`, `--` between parts. */
export function showMatches(
  text: string,
  matches: readonly LinePlace[],
  {
    path,
    firstLine,
    contextLines,
  }: { readonly path: string; readonly firstLine: number; readonly contextLines: number },
): readonly string[] {
  const lines = numberLines(text, matches, firstLine);
  if (contextLines === 0) return matches.map((place, index) => `${path}:${lines[index] ?? 0}:${cut(text, place)}`);
  const shown: string[] = [];
  let last = 0;
  for (const [index, place] of matches.entries()) {
    const line = lines[index] ?? 0;
    const around = (near: Near): void => {
      if (near.line <= last) return;
      if (shown.length > 0 && near.line > last + 1) shown.push("--");
      const mark = near.line === line ? ":" : "-";
      shown.push(`${path}${mark}${near.line}${mark}${cut(text, near)}`);
      last = near.line;
    };
    const nextLine = lines[index + 1] ?? Infinity;
    for (const near of linesBefore(text, { ...place, line }, contextLines)) around(near);
    around({ ...place, line });
    for (const near of linesAfter(text, { ...place, line }, contextLines)) if (near.line < nextLine) around(near);
  }
  return shown;
}

interface Near extends LinePlace {
  readonly line: number;
}

function numberLines(text: string, matches: readonly LinePlace[], firstLine: number): readonly number[] {
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

function linesBefore(text: string, from: Near, count: number): readonly Near[] {
  const lines: Near[] = [];
  let { start, line } = from;
  while (lines.length < count && start > 0) {
    const end = start - 1;
    start = end === 0 ? 0 : text.lastIndexOf("\n", end - 1) + 1;
    line -= 1;
    lines.unshift({ start, end, line });
  }
  return lines;
}

function linesAfter(text: string, from: Near, count: number): readonly Near[] {
  const lines: Near[] = [];
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

function cut(text: string, { start, end }: LinePlace): string {
  const line = text.slice(start, Math.min(end, start + MAX_SHOWN));
  return end - start > MAX_SHOWN ? `${line}... [${end - start} characters]` : line.replace(/\r$/, "");
}
