import type { OpenFile } from "../../file/open-file.ts";
import type { Walk } from "../../file/walk.ts";
import { fileKindOf, SNIFF_BYTES } from "./file-kind.ts";
import { readChunk, readLines, type Window } from "./lines.ts";
import { bytesOf, counted, done, refused, type TextOutcome } from "./outcome.ts";
import { shownPath } from "./shown-path.ts";
import { readWhole } from "./read-bytes.ts";

export interface ReadFileRequest {
  readonly path: string;
  /** The first line, counted from 1. */
  readonly offset: number;
  readonly limit: number;
}

export const MAX_IMAGE_BYTES = 5 * 1024 * 1024;

/** Shows a part of a text file with line numbers, an image as an image, and of other files what they are. */
export function readFile(walk: Walk, request: ReadFileRequest): TextOutcome {
  const file = walk.open(request.path);
  const start = readChunk(file, 0);
  const kind = fileKindOf(start.subarray(0, SNIFF_BYTES));
  const name = shownPath(file.path);
  switch (kind.kind) {
    case "image":
      return readImage(file, kind.mediaType, name);
    case "binary":
      return refused(
        `${name} is not a text file: ${kind.what}, ${bytesOf(file.stats.size)}. Use bash to look into it.`,
      );
    case "text":
      return file.stats.size === 0 ? done(`${name} is empty.`) : readText(file, { ...request, start, name });
  }
}

function readImage(file: OpenFile, mediaType: string, name: string): TextOutcome {
  const text = `${name}: ${mediaType}, ${bytesOf(file.stats.size)}`;
  if (file.stats.size > MAX_IMAGE_BYTES)
    return refused(`${text}. Images of at most ${bytesOf(MAX_IMAGE_BYTES)} are shown; make it smaller first.`);
  const base64 = readWhole(file, MAX_IMAGE_BYTES).toString("base64");
  return {
    content: text,
    isError: false,
    blocks: [
      { kind: "text", text },
      { kind: "image", mediaType, base64 },
    ],
  };
}

function readText(
  file: OpenFile,
  { start, name, offset, limit }: ReadFileRequest & { readonly start: Buffer; readonly name: string },
): TextOutcome {
  const window = readLines(file, { start, first: offset, limit });
  const total = `${counted(window.totalLines, "line")}${window.counted === "all" ? "" : " or more"}`;
  if (window.lines.length === 0) return refused(`${name} has ${total}; there is no line ${offset}.`);
  const shown = window.lines.map((line, index) => `${String(offset + index).padStart(6)}\t${line}`);
  const notes = notesOn(window, { offset, total, name });
  return done(notes === "" ? shown.join("\n") : `${shown.join("\n")}\n[${notes}]`);
}

function notesOn(
  window: Window,
  { offset, total, name }: { readonly offset: number; readonly total: string; readonly name: string },
): string {
  const last = offset + window.lines.length - 1;
  const isPart = offset > 1 || last < window.totalLines;
  const next = last < window.totalLines ? `; go on with offset ${last + 1}` : "";
  return [
    ...(isPart ? [`lines ${offset} to ${last} of ${total} of ${name}${next}`] : []),
    ...(window.cutLines > 0 ? [`${counted(window.cutLines, "long line")} cut`] : []),
    ...(window.lineEnd === "crlf" ? ["line ends are CRLF"] : []),
  ].join(". ");
}
