import type { OpenFile } from "../../file/open-file.ts";
import { readAt } from "./read-bytes.ts";

/** A part of a file's lines. */
export interface Window {
  readonly lines: readonly string[];
  readonly totalLines: number;
  /** Whether all lines were counted, or only a part of a large file. */
  readonly counted: "all" | "some";
  readonly cutLines: number;
  readonly lineEnd: "lf" | "crlf";
}

/** Characters of a line that are shown. */
export const MAX_LINE_CHARACTERS = 2000;
/** All lines together. */
export const MAX_TEXT_BYTES = 256 * 1024;
/** A file is counted on to here after the lines that were asked for. */
const MAX_COUNTED_BYTES = 10 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
/** Even if each of its bytes is shown as a replacement character, its text is not too long. */
const SMALL_BYTES = 64 * 1024;
/** A worker does one job at a time, so one is enough for all. */
const CHUNK = Buffer.allocUnsafe(CHUNK_BYTES);
/** Enough for the characters shown, whatever they are. */
const KEPT_BYTES = MAX_LINE_CHARACTERS * 4 + 4;
const NEW_LINE = 10;
const NOTHING = Buffer.alloc(0);

/** A part of the file from this position on, empty at its end; good until the next one is read. */
export function readChunk(file: OpenFile, position: number): Buffer {
  const chunk = CHUNK.subarray(0, Math.max(0, file.stats.size - position));
  return chunk.subarray(0, readAt(file, chunk, position));
}

/**
 * Finds lines without holding more of the file than a chunk and the lines that were asked for, and reads no further than
 * its end was when it was opened. `start` is the first chunk.
 */
export function readLines(
  file: OpenFile,
  { start, ...asked }: { readonly start: Buffer; readonly first: number; readonly limit: number },
): Window {
  const small = start.length === file.stats.size && start.length <= SMALL_BYTES ? smallWindow(start, asked) : null;
  if (small !== null) return small;
  const collect = createCollector(asked);
  let chunk = start;
  for (let position = 0; chunk.length > 0; chunk = readChunk(file, position)) {
    splitChunk(chunk, collect);
    position += chunk.length;
    if (collect.isFull() && position >= MAX_COUNTED_BYTES) break;
  }
  collect.end();
  return { ...collect.window(), counted: chunk.length === 0 ? "all" : "some" };
}

/** A small file as a whole, which is most of them; null if a line has to be cut. */
function smallWindow(
  bytes: Buffer,
  { first, limit }: { readonly first: number; readonly limit: number },
): Window | null {
  const text = bytes.toString("utf8");
  const all = text.split("\n");
  // What follows the last line's end is no line.
  if (all.at(-1) === "") all.pop();
  const asked = all.slice(first - 1, first - 1 + limit);
  if (asked.some(({ length }) => length > MAX_LINE_CHARACTERS)) return null;
  const crlfLines = text.includes("\r") ? asked.filter((line) => line.endsWith("\r")).length : 0;
  return {
    lines: crlfLines === 0 ? asked : asked.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line)),
    totalLines: all.length,
    counted: "all",
    cutLines: 0,
    lineEnd: crlfLines > 0 && crlfLines === asked.length ? "crlf" : "lf",
  };
}

interface Collector {
  /** A piece of the current line; good until the line ends. */
  readonly piece: (bytes: Buffer) => void;
  readonly lineEnd: () => void;
  /** Whether all lines are there that were asked for. */
  readonly isFull: () => boolean;
  readonly end: () => void;
  readonly window: () => Omit<Window, "counted">;
}

function splitChunk(chunk: Buffer, collect: Collector): void {
  let start = 0;
  for (let end = chunk.indexOf(NEW_LINE); end >= 0; end = chunk.indexOf(NEW_LINE, start)) {
    collect.piece(chunk.subarray(start, end));
    collect.lineEnd();
    start = end + 1;
  }
  // The chunk is filled again before this line ends.
  if (start < chunk.length) collect.piece(Buffer.from(chunk.subarray(start)));
}

function createCollector({ first, limit }: { readonly first: number; readonly limit: number }): Collector {
  const lines: string[] = [];
  let line = 1;
  let kept: Buffer[] = [];
  let keptBytes = 0;
  let lineBytes = 0;
  let textBytes = 0;
  let cutLines = 0;
  let crlfLines = 0;
  let state: "before" | "in" | "full" = first === 1 ? "in" : "before";

  const take = (): void => {
    const [first = NOTHING, ...more] = kept;
    const text = (more.length === 0 ? first : Buffer.concat(kept)).toString("utf8");
    const whole = text.endsWith("\r") ? text.slice(0, -1) : text;
    if (whole !== text) crlfLines += 1;
    const shown = whole.slice(0, MAX_LINE_CHARACTERS);
    const isCut = shown.length < whole.length || lineBytes > keptBytes;
    const said = isCut ? `${shown}... [the line has ${lineBytes} bytes]` : shown;
    textBytes += Buffer.byteLength(said) + 1;
    if (textBytes > MAX_TEXT_BYTES && lines.length > 0) {
      state = "full";
      return;
    }
    if (isCut) cutLines += 1;
    lines.push(said);
    if (lines.length >= limit) state = "full";
  };
  const next = (): void => {
    if (state === "in") take();
    line += 1;
    if (state === "before" && line >= first) state = "in";
    kept = [];
    keptBytes = 0;
    lineBytes = 0;
  };
  return {
    piece: (bytes) => {
      lineBytes += bytes.length;
      if (state !== "in" || keptBytes >= KEPT_BYTES || bytes.length === 0) return;
      const part = bytes.length <= KEPT_BYTES - keptBytes ? bytes : bytes.subarray(0, KEPT_BYTES - keptBytes);
      kept.push(part);
      keptBytes += part.length;
    },
    lineEnd: next,
    isFull: () => state === "full",
    end: () => {
      if (lineBytes > 0) next();
    },
    window: () => ({
      lines,
      totalLines: line - 1,
      cutLines,
      lineEnd: crlfLines > 0 && crlfLines === lines.length ? "crlf" : "lf",
    }),
  };
}
