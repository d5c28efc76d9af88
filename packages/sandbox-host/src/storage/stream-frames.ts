import { type Readable, Transform, type TransformCallback } from "node:stream";
import { crc32 } from "node:zlib";
import { streamDamaged } from "./names.ts";

/**
 * A stream as it travels: the opening, then frames of a length, a checksum and a payload, and at last one of length 0. Each
 * checksum continues the one before it, so that a byte that was changed, a part that is missing and one that was moved all
 * show before the payload is used. Backends notice damage at the end of a stream or not at all: zfs-fuse hangs on some.
 */
const OPENING = Buffer.from("turnbox1", "ascii");
const HEADER_BYTES = 8;
const MAX_PAYLOAD_BYTES = 64 * 1024;

export interface FrameWriterOptions {
  /** What has to be true before the last frame is written; the stream fails as this does. */
  readonly beforeEnd: () => Promise<void>;
  /** Called with each payload that was taken. */
  readonly onProgress?: () => void;
}

/** Puts what is written to it into frames. */
export class FrameWriter extends Transform {
  readonly #beforeEnd: () => Promise<void>;
  readonly #onProgress: () => void;
  #checksum = crc32(OPENING);

  constructor({ beforeEnd, onProgress = () => undefined }: FrameWriterOptions) {
    super({ readableHighWaterMark: MAX_PAYLOAD_BYTES, writableHighWaterMark: MAX_PAYLOAD_BYTES });
    this.#beforeEnd = beforeEnd;
    this.#onProgress = onProgress;
    this.push(OPENING);
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#onProgress();
    for (let at = 0; at < chunk.length; at += MAX_PAYLOAD_BYTES) {
      this.#pushFrame(chunk.subarray(at, at + MAX_PAYLOAD_BYTES));
    }
    done();
  }

  override _flush(done: TransformCallback): void {
    this.#beforeEnd().then(
      () => {
        this.#pushFrame(Buffer.alloc(0));
        done();
      },
      (thrown: unknown) => {
        done(thrown instanceof Error ? thrown : new Error(String(thrown)));
      },
    );
  }

  #pushFrame(payload: Buffer): void {
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt32LE(payload.length, 0);
    this.#checksum = checksumOf(header, payload, this.#checksum);
    header.writeUInt32LE(this.#checksum, 4);
    this.push(header);
    if (payload.length > 0) this.push(payload);
  }
}

/** The payloads of a stream of frames, each as soon as it is known to be whole. `STREAM_DAMAGED` for any other stream. */
export async function* readFrames(source: Readable): AsyncGenerator<Buffer, void, undefined> {
  const parser = new FrameParser();
  for await (const chunk of source as AsyncIterable<Buffer>) yield* parser.take(chunk);
  parser.finish();
}

class FrameParser {
  #held: Buffer = Buffer.alloc(0);
  #checksum = crc32(OPENING);
  #part: "opening" | "frames" | "end" = "opening";

  /** The payloads that are whole with this chunk; what is left is less than one frame. */
  *take(chunk: Buffer): Generator<Buffer, void, undefined> {
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    if (this.#part === "opening") this.#takeOpening();
    for (let payload = this.#nextPayload(); payload !== undefined; payload = this.#nextPayload()) yield payload;
    if (this.#part === "end" && this.#held.length > 0) throw streamDamaged("it goes on after its end");
  }

  finish(): void {
    if (this.#part !== "end") throw streamDamaged("it ends early");
  }

  #takeOpening(): void {
    if (this.#held.length < OPENING.length) return;
    if (!this.#held.subarray(0, OPENING.length).equals(OPENING)) throw streamDamaged("it is no stream of snapshots");
    this.#held = this.#held.subarray(OPENING.length);
    this.#part = "frames";
  }

  /** Undefined if no whole frame is held; the last frame has no payload. */
  #nextPayload(): Buffer | undefined {
    if (this.#part !== "frames" || this.#held.length < HEADER_BYTES) return undefined;
    const length = this.#held.readUInt32LE(0);
    if (length > MAX_PAYLOAD_BYTES) throw streamDamaged("a part of it is longer than any is");
    if (this.#held.length < HEADER_BYTES + length) return undefined;
    const payload = this.#held.subarray(HEADER_BYTES, HEADER_BYTES + length);
    this.#checksum = checksumOf(this.#held, payload, this.#checksum);
    if (this.#held.readUInt32LE(4) !== this.#checksum) throw streamDamaged("a checksum does not match");
    this.#held = this.#held.subarray(HEADER_BYTES + length);
    if (length > 0) return payload;
    this.#part = "end";
    return undefined;
  }
}

function checksumOf(header: Buffer, payload: Buffer, before: number): number {
  return crc32(payload, crc32(header.subarray(0, 4), before));
}
