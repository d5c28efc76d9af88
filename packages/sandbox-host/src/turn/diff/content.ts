import { readSync } from "node:fs";
import type { BytePath } from "./byte-path.ts";
import type { Tree } from "./tree.ts";

/** A file in one of the trees. */
export interface FileAt {
  readonly tree: Tree;
  readonly path: BytePath;
  readonly sizeBytes: number;
}

const CHUNK_BYTES = 64 * 1024;
/** How much of two large files has to agree before they count as one file that changed. */
const ENOUGH_BYTES = 1024 * 1024;
/** Less in common than this may be chance, unless it is all there is. */
const MIN_SHARED_BYTES = 16;

const left = Buffer.alloc(CHUNK_BYTES);
const right = Buffer.alloc(CHUNK_BYTES);

/** Whether two files of the same size have the same bytes; reads no further than the first difference. */
export function hasSameBytes(a: FileAt, b: FileAt, tick: () => void): boolean {
  if (a.sizeBytes !== b.sizeBytes) return false;
  if (a.sizeBytes === 0) return true;
  using first = a.tree.open(a.path);
  using second = b.tree.open(b.path);
  for (let offset = 0; offset < a.sizeBytes; offset += CHUNK_BYTES) {
    tick();
    const length = readAt(first.descriptor, left, offset);
    if (readAt(second.descriptor, right, offset) !== length) return false;
    if (left.compare(right, 0, length, 0, length) !== 0) return false;
  }
  return true;
}

/** Whether more than half of the smaller file is at the beginning or at the end of both: one file that was changed. */
export function sharesMost(a: FileAt, b: FileAt, tick: () => void): boolean {
  const smaller = Math.min(a.sizeBytes, b.sizeBytes);
  if (smaller === 0) return false;
  const needed = smaller < MIN_SHARED_BYTES ? Math.max(a.sizeBytes, b.sizeBytes) : Math.floor(smaller / 2) + 1;
  const enough = Math.min(Math.max(needed, Math.min(smaller, MIN_SHARED_BYTES)), ENOUGH_BYTES);
  using first = a.tree.open(a.path);
  using second = b.tree.open(b.path);
  const limit = Math.min(smaller, ENOUGH_BYTES);
  const atStart = sharedBytes(limit, tick, (offset, length) => [
    left.subarray(0, readAt(first.descriptor, left.subarray(0, length), offset)),
    right.subarray(0, readAt(second.descriptor, right.subarray(0, length), offset)),
  ]);
  if (atStart >= enough) return true;
  const atEnd = sharedBytes(limit - atStart, tick, (offset, length) => [
    backwards(first.descriptor, left, { end: a.sizeBytes - offset, length }),
    backwards(second.descriptor, right, { end: b.sizeBytes - offset, length }),
  ]);
  return atStart + atEnd >= enough;
}

/** How many of the first `limit` bytes agree, of two sequences that are read in chunks. */
function sharedBytes(
  limit: number,
  tick: () => void,
  read: (offset: number, length: number) => readonly [Buffer, Buffer],
): number {
  for (let offset = 0; offset < limit; offset += CHUNK_BYTES) {
    tick();
    const [a, b] = read(offset, Math.min(CHUNK_BYTES, limit - offset));
    const length = Math.min(a.length, b.length);
    if (a.compare(b, 0, length, 0, length) === 0 && length > 0) continue;
    let same = 0;
    while (same < length && a[same] === b[same]) same += 1;
    return offset + same;
  }
  return limit;
}

/** The bytes that end at `end`, the last one first. */
function backwards(
  descriptor: number,
  into: Buffer,
  { end, length }: { readonly end: number; readonly length: number },
): Buffer {
  const start = Math.max(0, end - length);
  return into.subarray(0, readAt(descriptor, into.subarray(0, end - start), start)).reverse();
}

/** Fills the buffer from the file as far as it goes. */
export function readAt(descriptor: number, into: Buffer, offset: number): number {
  let filled = 0;
  while (filled < into.length) {
    const length = readSync(descriptor, into, filled, into.length - filled, offset + filled);
    if (length === 0) break;
    filled += length;
  }
  return filled;
}
