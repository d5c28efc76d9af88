import { Parser, type ReadEntry } from "tar";
import { type FileFailure, invalidField } from "../failure.ts";

/** Bytes of an extended header. */
const MAX_META_BYTES = 1024 * 1024;
const GZIP = [0x1f, 0x8b];
/** More than this is a bomb: text comes to a tenth, rarely to a hundredth. */
const MAX_GZIP_RATIO = 200;
/** Enough bytes to recognize a compression. */
const MAGIC_BYTES = 4;
/** So much of a body is unpacked at once; gzip makes at most a thousand times as much of it. */
const SLICE_BYTES = 16 * 1024;
/** How bzip2, xz and zstd begin. */
const NOT_TAKEN: readonly (readonly number[])[] = [
  [0x42, 0x5a, 0x68],
  [0xfd, 0x37, 0x7a],
  [0x28, 0xb5, 0x2f, 0xfd],
];

/** What gets the entries of a body, and may fail at any of them. */
export interface EntryReader {
  read(entry: ReadEntry): void;
  fail(failure: FileFailure): void;
  /** Throws the first failure. */
  check(): void;
}

/**
 * Reads a tar archive, plain or by gzip, from a body. Throws the reader's first failure soon after it happened; what is no
 * archive fails before any entry is read.
 */
export function readTarBody(body: Iterable<Buffer>, reader: EntryReader): void {
  const parser = new Parser({
    strict: true,
    maxMetaEntrySize: MAX_META_BYTES,
    brotli: false,
    zstd: false,
    maxDecompressionRatio: MAX_GZIP_RATIO,
    onReadEntry: (entry) => {
      reader.read(entry);
    },
  });
  parser.on("error", (error: Error) => {
    reader.fail(invalidField("data", `must be a tar archive: ${error.message}`));
  });
  // The parser works at once, in the call that gives it the bytes.
  for (const piece of recognized(body)) {
    for (let at = 0; at < piece.length; at += SLICE_BYTES) {
      parser.write(piece.subarray(at, at + SLICE_BYTES));
      reader.check();
    }
  }
  parser.end();
  reader.check();
}

/** The body, whose first bytes may come one by one, once they show what it is. Throws if it cannot be unpacked. */
function* recognized(body: Iterable<Buffer>): Iterable<Buffer> {
  let start = Buffer.alloc(0);
  let isKnown = false;
  for (const piece of body) {
    if (isKnown) {
      yield piece;
      continue;
    }
    start = Buffer.concat([start, piece]);
    if (start.length < MAGIC_BYTES) continue;
    assertTaken(start);
    isKnown = true;
    yield start;
  }
  if (!isKnown) yield start;
}

function assertTaken(start: Buffer): void {
  const begins = (magic: readonly number[]): boolean => magic.every((byte, at) => start[at] === byte);
  if (!begins(GZIP) && NOT_TAKEN.some(begins))
    throw invalidField("data", "must be a tar archive, plain or compressed by gzip");
}
