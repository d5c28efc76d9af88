import { open, unlink } from "node:fs/promises";
import { hasErrno } from "@turnbox/core";
import type { Progress, StreamName } from "./output.ts";

/** A segment is full at this weight: what is kept in memory, and what one file holds. */
export const SEGMENT_BYTES = 1024 * 1024;
/** What a piece weighs beside its bytes, so that very many small ones are bounded too. */
const PIECE_BYTES = 128;

export type Offsets = Readonly<Record<StreamName, number>>;

interface Piece {
  readonly stream: StreamName;
  readonly offset: number;
  readonly length: number;
  /** Null where the bytes are in the segment's file. */
  readonly data: Uint8Array | null;
  /** Where they begin there. */
  readonly at: number;
}

/**
 * A stretch of the output of a call. In memory its pieces are in the order in which they came; on disk each stream's
 * bytes lie together, so that a stretch is described by two pieces however small the writes were.
 */
export interface Segment {
  /** The offset of each stream at which it begins. */
  readonly starts: Offsets;
  readonly bytes: number;
  readonly weight: number;
  /** What of it is in memory. */
  readonly memoryBytes: number;
  add(stream: StreamName, data: Uint8Array): void;
  /** Writes it to a file; its bytes stay in memory until `release`. */
  save(path: string): Promise<void>;
  release(): void;
  /** What comes first of what a reader at these offsets has not had, at most `maxBytes` of one stream; null for nothing. */
  read(next: Offsets, maxBytes: number): Promise<Progress | null>;
  remove(): Promise<void>;
}

export function createSegment(starts: Offsets): Segment {
  const ends: Record<StreamName, number> = { ...starts };
  let pieces: Piece[] = [];
  let onDisk: { readonly path: string; readonly pieces: readonly Piece[] } | null = null;
  let bytes = 0;

  const firstUnread = (next: Offsets): number =>
    pieces.findIndex(({ stream, offset, length }) => offset + length > next[stream]);

  return {
    starts,
    get bytes() {
      return bytes;
    },
    get weight() {
      return bytes + pieces.length * PIECE_BYTES;
    },
    get memoryBytes() {
      return pieces.reduce((sum, { data }) => sum + PIECE_BYTES + (data?.length ?? 0), 0);
    },
    add: (stream, data) => {
      const last = pieces.at(-1);
      const joined = last?.stream === stream && last.data !== null ? joinNeighbours(last.data, data) : undefined;
      if (last !== undefined && joined !== undefined)
        pieces[pieces.length - 1] = { ...last, length: joined.length, data: joined };
      else pieces.push({ stream, offset: ends[stream], length: data.length, data, at: 0 });
      ends[stream] += data.length;
      bytes += data.length;
    },
    save: async (path) => {
      const parts = (["stdout", "stderr"] as const).flatMap((stream) =>
        pieces.filter((piece) => piece.stream === stream),
      );
      await writeParts(
        path,
        parts.flatMap(({ data }) => data ?? []),
      );
      const stdoutBytes = ends.stdout - starts.stdout;
      const both: readonly Piece[] = [
        { stream: "stdout", offset: starts.stdout, length: stdoutBytes, data: null, at: 0 },
        { stream: "stderr", offset: starts.stderr, length: ends.stderr - starts.stderr, data: null, at: stdoutBytes },
      ];
      onDisk = { path, pieces: both };
    },
    release: () => {
      if (onDisk !== null) pieces = [...onDisk.pieces];
    },
    read: async (next, maxBytes) => {
      const index = firstUnread(next);
      const first = pieces[index];
      if (first === undefined) return null;
      const { stream } = first;
      const offset = next[stream];
      const skip = offset - first.offset;
      if (first.data === null) {
        const length = Math.min(first.length - skip, maxBytes);
        return { stream, offset, data: await readPart(onDisk?.path ?? "", first.at + skip, length) };
      }
      return { stream, offset, data: join(pieces, { index, skip, maxBytes }) };
    },
    remove: async () => {
      pieces = [];
      if (onDisk !== null) await remove(onDisk.path);
    },
  };
}

/** Both as one where they lie end to end in memory, as what was read in bulk does. */
function joinNeighbours(first: Uint8Array, second: Uint8Array): Uint8Array | undefined {
  if (first.buffer !== second.buffer || first.byteOffset + first.length !== second.byteOffset) return undefined;
  return new Uint8Array(first.buffer, first.byteOffset, first.length + second.length);
}

/** Neighbouring pieces of one stream, as one. */
function join(
  pieces: readonly Piece[],
  from: { readonly index: number; readonly skip: number; readonly maxBytes: number },
): Uint8Array {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for (let at = from.index; at < pieces.length; at += 1) {
    const piece = pieces[at];
    if (piece === undefined || piece.data === null) break;
    if (piece.stream !== pieces[from.index]?.stream || bytes >= from.maxBytes) break;
    const part = piece.data.subarray(at === from.index ? from.skip : 0).subarray(0, from.maxBytes - bytes);
    parts.push(part);
    bytes += part.length;
  }
  return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
}

/** Writes a new file, or leaves none. */
async function writeParts(path: string, parts: readonly Uint8Array[]): Promise<void> {
  const bytes = parts.reduce((sum, { length }) => sum + length, 0);
  try {
    await using file = await open(path, "w", 0o600);
    const { bytesWritten } = await file.writev(parts);
    if (bytesWritten < bytes) throw new Error("there is no room for kept output");
  } catch (cause) {
    await remove(path);
    throw cause;
  }
}

async function remove(path: string): Promise<void> {
  await unlink(path).catch((thrown: unknown) => {
    if (!hasErrno(thrown, "ENOENT")) throw thrown;
  });
}

async function readPart(path: string, at: number, length: number): Promise<Uint8Array> {
  await using file = await open(path, "r");
  const data = Buffer.allocUnsafe(length);
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(data, done, length - done, at + done);
    if (bytesRead === 0) throw new Error("a file of kept output is too short");
    done += bytesRead;
  }
  return data;
}
