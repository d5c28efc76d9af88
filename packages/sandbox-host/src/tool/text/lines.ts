import type { OpenFile } from "../../file/walk.ts";
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
/** Enough for the characters shown, whatever they are. */
const KEPT_BYTES = MAX_LINE_CHARACTERS * 4 + 4;
const NEW_LINE = 10;

/** Reads lines without holding more of the file than a chunk and the lines that were asked for. */
export function readLines(file: OpenFile, asked: { readonly first: number; readonly limit: number }): Window {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  const collect = createCollector(asked);
  let position = 0;
  let read = readAt(file, chunk, 0);
  while (read > 0) {
    splitChunk(chunk.subarray(0, read), collect);
    position += read;
    if (collect.isFull() && position >= MAX_COUNTED_BYTES) break;
    read = readAt(file, chunk, position);
  }
  collect.end();
  return { ...collect.window(), counted: read === 0 ? "all" : "some" };
}

interface Collector {
  /** A piece of the current line. */
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
  collect.piece(chunk.subarray(start));
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
    const text = Buffer.concat(kept).toString("utf8");
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
      // The chunk is filled again, so what is kept is copied.
      const copy = Buffer.from(bytes.subarray(0, KEPT_BYTES - keptBytes));
      kept.push(copy);
      keptBytes += copy.length;
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
