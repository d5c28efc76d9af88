import { open, unlink } from "node:fs/promises";
import { hasErrno } from "@turnbox/core";
import type { Progress, StreamName } from "./capture.ts";

/** A segment is full at this weight: it bounds what is kept in memory, and what one file holds. */
export const SEGMENT_BYTES = 1024 * 1024;
/** What a piece weighs beside its bytes, so that very many small ones are bounded too. */
const PIECE_BYTES = 128;

export const STREAMS: readonly StreamName[] = ["stdout", "stderr"];

export type Offsets = Readonly<Record<StreamName, number>>;

interface Piece {
  readonly stream: StreamName;
  readonly offset: number;
  readonly length: number;
  /** Null if the bytes are in the segment's file. */
  readonly data: Uint8Array | null;
  /** The position of the first byte in the file. */
  readonly at: number;
}

/**
 * A stretch of the output of a call. In memory its pieces are in the order in which they came; on disk each stream's
 * bytes lie together, so that a stretch is described by two pieces however small the writes were.
 */
export class OutputSegment {
  /** The offset of each stream at which it begins. */
  readonly starts: Offsets;
  readonly #ends: Record<StreamName, number>;
  #pieces: Piece[] = [];
  #file: { readonly path: string; readonly pieces: readonly Piece[] } | null = null;
  #bytes = 0;

  constructor(starts: Offsets) {
    this.starts = starts;
    this.#ends = { ...starts };
  }

  get bytes(): number {
    return this.#bytes;
  }

  get weight(): number {
    return this.#bytes + this.#pieces.length * PIECE_BYTES;
  }

  get memoryBytes(): number {
    return this.#pieces.reduce((sum, { data }) => sum + PIECE_BYTES + (data?.length ?? 0), 0);
  }

  add(stream: StreamName, data: Uint8Array): void {
    const last = this.#pieces.at(-1);
    const joined = last?.stream === stream && last.data !== null ? joinNeighbours(last.data, data) : undefined;
    if (last !== undefined && joined !== undefined)
      this.#pieces[this.#pieces.length - 1] = { ...last, length: joined.length, data: joined };
    else this.#pieces.push({ stream, offset: this.#ends[stream], length: data.length, data, at: 0 });
    this.#ends[stream] += data.length;
    this.#bytes += data.length;
  }

  /** Writes it to a file; its bytes stay in memory until `release`. */
  async save(path: string): Promise<void> {
    const parts = STREAMS.flatMap((stream) => this.#pieces.filter((piece) => piece.stream === stream));
    await writeParts(
      path,
      parts.flatMap(({ data }) => data ?? []),
    );
    const { starts } = this;
    const stdoutBytes = this.#ends.stdout - starts.stdout;
    const stderrBytes = this.#ends.stderr - starts.stderr;
    const pieces: readonly Piece[] = [
      { stream: "stdout", offset: starts.stdout, length: stdoutBytes, data: null, at: 0 },
      { stream: "stderr", offset: starts.stderr, length: stderrBytes, data: null, at: stdoutBytes },
    ];
    this.#file = { path, pieces };
  }

  /** Frees the memory of a saved segment. */
  release(): void {
    if (this.#file !== null) this.#pieces = [...this.#file.pieces];
  }

  /** The first bytes after these offsets, at most `maxBytes` of one stream; null if there are none. */
  async read(next: Offsets, maxBytes: number): Promise<Progress | null> {
    const index = this.#pieces.findIndex(({ stream, offset, length }) => offset + length > next[stream]);
    const first = this.#pieces[index];
    if (first === undefined) return null;
    const { stream } = first;
    const offset = next[stream];
    const skip = offset - first.offset;
    if (first.data === null) {
      const length = Math.min(first.length - skip, maxBytes);
      return { stream, offset, data: await readPart(this.#file?.path ?? "", first.at + skip, length) };
    }
    return { stream, offset, data: join(this.#pieces, { index, skip, maxBytes }) };
  }

  async remove(): Promise<void> {
    this.#pieces = [];
    if (this.#file !== null) await remove(this.#file.path);
  }
}

/** Both as one if they lie end to end in memory, as pieces of one bulk read do. */
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
