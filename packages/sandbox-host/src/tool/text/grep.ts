import { readSync } from "node:fs";
import { parseGlob } from "@turnbox/core";
import type { OpenFile } from "../../file/open-file.ts";
import type { Walk } from "../../file/walk.ts";
import { errnoCode } from "../../file/failure.ts";
import { toText } from "../../file/path.ts";
import { isBinary } from "./file-kind.ts";
import { type LineRange, type LineSearch, parseSearch } from "./line-search.ts";
import { counted, done, type TextOutcome } from "./outcome.ts";
import { shownPath } from "./shown-path.ts";
import { readAt } from "./read-bytes.ts";
import { showMatches } from "./show-matches.ts";
import { isHidden, orGone, treeOf } from "./tree.ts";

export interface GrepRequest {
  readonly pattern: string;
  readonly syntax: "regex" | "literal";
  /** A directory, or one file. */
  readonly path: string;
  /** Empty for everything. */
  readonly include: string;
  /** Empty for nothing. */
  readonly exclude: string;
  readonly contextLines: number;
  readonly maxResults: number;
}

/** A larger file is searched in parts of this size that end at a line's end. */
const WINDOW_BYTES = 4 * 1024 * 1024;
const NEW_LINE = 10;
/** After so much, no further file's matches are shown; they are counted. */
const MAX_CHARACTERS = 256 * 1024;

interface Report {
  readonly lines: string[];
  characters: number;
  shown: number;
  total: number;
  filesWithMatches: number;
  filesSearched: number;
  binaryFiles: number;
  unreadableFiles: number;
}

/** Lines that match, as `path:line:text`, with `path-line-text` around them if context is asked for. */
export function grep(walk: Walk, request: GrepRequest): TextOutcome {
  const search = parseSearch(request);
  const report: Report = {
    lines: [],
    characters: 0,
    shown: 0,
    total: 0,
    filesWithMatches: 0,
    filesSearched: 0,
    binaryFiles: 0,
    unreadableFiles: 0,
  };
  const buffer = Buffer.allocUnsafe(WINDOW_BYTES);
  const searchIn = (file: OpenFile): void => {
    searchFile(file, { search, request, report, buffer });
  };
  if (isDirectory(walk, request.path)) searchTree(walk, request, { report, searchIn });
  else {
    const file = walk.open(request.path);
    searchIn(file);
  }
  return done(textOf(report));
}

function isDirectory(walk: Walk, path: string): boolean {
  try {
    walk.directory(path)[Symbol.dispose]();
    return true;
  } catch {
    // The attempt to open it as a file fails with the reason.
    return false;
  }
}

function searchTree(
  walk: Walk,
  request: GrepRequest,
  { report, searchIn }: { readonly report: Report; readonly searchIn: (file: OpenFile) => void },
): void {
  const include = request.include === "" ? null : parseFilter(request.include);
  const exclude = request.exclude === "" ? null : parseFilter(request.exclude);
  using top = walk.directory(request.path);
  const tree = treeOf(top, ({ name, relative }) => !isHidden(name) && exclude?.(toText(relative)) !== true);
  for (const { kind, name, relative, parent } of tree) {
    if (kind !== "file") continue;
    if (include !== null || exclude !== null) {
      const shown = toText(relative);
      if (include?.(shown) === false || exclude?.(shown) === true) continue;
    }
    const opened = orUnreadable(() => parent.open(name));
    if (opened === null) {
      report.unreadableFiles += 1;
      continue;
    }
    using file = opened;
    searchIn(file);
  }
}

/** Errors of the system belong to one file; the search goes on. */
function orUnreadable<Value>(look: () => Value): Value | null {
  try {
    return orGone(look);
  } catch (thrown) {
    if (errnoCode(thrown) === "" || errnoCode(thrown) === "EIO" || errnoCode(thrown) === "ENOTCONN") throw thrown;
    return null;
  }
}

/** A pattern without a slash is about names at any depth, one with a slash about paths from the top of the search. */
function parseFilter(pattern: string): (relative: string) => boolean {
  const glob = parseGlob(pattern);
  if (pattern.replace(/\/$/, "").includes("/")) return glob.matches;
  return (relative) => glob.matches(relative.slice(relative.lastIndexOf("/") + 1));
}

interface Search {
  readonly search: LineSearch;
  readonly request: GrepRequest;
  readonly report: Report;
  readonly buffer: Buffer;
}

function searchFile(file: OpenFile, { search, request, report, buffer }: Search): void {
  const before = report.total;
  let position = 0;
  let line = 1;
  for (;;) {
    const read = readWindow(file, buffer, position);
    if (read === 0) break;
    const window = wholeLines(buffer.subarray(0, read), read < buffer.length ? "last" : "more");
    if (position === 0 && isBinary(window)) {
      report.binaryFiles += 1;
      return;
    }
    if (search.mayMatch(window)) {
      const text = window.toString("utf8");
      const found = search.find(text);
      report.total += found.length;
      if (found.length > 0) show(report, { text, found, path: shownPath(file.path), firstLine: line, request });
    }
    position += window.length;
    if (read < buffer.length) break;
    line += countLines(window);
  }
  report.filesSearched += 1;
  if (report.total > before) report.filesWithMatches += 1;
}

function show(
  report: Report,
  matches: {
    readonly text: string;
    readonly found: readonly LineRange[];
    readonly path: string;
    readonly firstLine: number;
    readonly request: GrepRequest;
  },
): void {
  const { contextLines, maxResults } = matches.request;
  const shown = matches.found.slice(0, maxResults - report.shown);
  if (shown.length === 0 || report.characters >= MAX_CHARACTERS) return;
  if (contextLines > 0 && report.lines.length > 0) report.lines.push("--");
  const lines = showMatches(matches.text, shown, { ...matches, contextLines });
  report.shown += shown.length;
  report.characters += lines.reduce((sum, line) => sum + line.length, 0);
  report.lines.push(...lines);
}

/** Most files are small: if the first read gives all that the file had when it was opened, there is no second one. */
function readWindow(file: OpenFile, buffer: Buffer, position: number): number {
  const first = readSync(file.descriptor, buffer, 0, buffer.length, position);
  if (first === 0 || first === buffer.length || position + first === file.stats.size) return first;
  return first + readAt(file, buffer.subarray(first), position + first);
}

/** The part of a window that ends at a line's end; a line that is longer than the window is cut. */
function wholeLines(window: Buffer, which: "last" | "more"): Buffer {
  if (which === "last") return window;
  const end = window.lastIndexOf(NEW_LINE);
  return end < 0 ? window : window.subarray(0, end + 1);
}

function countLines(window: Buffer): number {
  let count = 0;
  for (let at = window.indexOf(NEW_LINE); at >= 0; at = window.indexOf(NEW_LINE, at + 1)) count += 1;
  return count;
}

function textOf(report: Report): string {
  const skipped = [
    ...(report.binaryFiles > 0 ? [`${counted(report.binaryFiles, "binary file")} skipped`] : []),
    ...(report.unreadableFiles > 0 ? [`${counted(report.unreadableFiles, "file")} not readable`] : []),
  ];
  if (report.total === 0) return `No match in ${[counted(report.filesSearched, "file"), ...skipped].join(", ")}.`;
  const left = report.total - report.shown;
  const files = counted(report.filesWithMatches, "file");
  const notes = [
    ...(left > 0 ? [`${report.shown} of ${counted(report.total, "match", "matches")} in ${files} shown`] : []),
    ...skipped,
  ];
  return notes.length === 0 ? report.lines.join("\n") : `${report.lines.join("\n")}\n[${notes.join(", ")}]`;
}
