import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdDecompress, type ZstdDecompress } from "node:zlib";
import { type Call, type LinkedSignal, linkSignals, SandboxError } from "@turnbox/core";
import { damaged } from "../damage.ts";
import type { ObjectRecord } from "./object-record.ts";

const CLOSED = new Error("the stream was closed");

/**
 * A stream of what a generator gives. To destroy it aborts the generator's signal, so that what the generator waits for ends
 * too; it is closed when the generator has ended.
 */
export class PlainStream extends Readable {
  readonly #link: LinkedSignal;
  readonly #chunks: AsyncGenerator<Buffer>;

  constructor(generate: (call: Call) => AsyncGenerator<Buffer>, call: Call) {
    super();
    this.#link = linkSignals([call.signal]);
    this.#chunks = generate(this.#link);
  }

  override _read(): void {
    this.#chunks.next().then(
      ({ done, value }) => this.push(done === true ? null : value),
      (failure: unknown) => this.destroy(failure as Error),
    );
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#link.abort(error ?? CLOSED);
    const end = (): void => {
      this.#link[Symbol.dispose]();
      callback(error);
    };
    this.#chunks.return(undefined).then(end, end);
  }
}

/**
 * What the compressed bytes of all parts of an object decompress to. `readParts` ends when its signal aborts. Fails with the failure of a part, and with `ARCHIVE_DAMAGED`
 * if they are not what the record says.
 */
export async function* decompress(
  readParts: (call: Call) => AsyncIterable<Buffer>,
  record: ObjectRecord,
  call: Call,
): AsyncGenerator<Buffer> {
  using link = linkSignals([call.signal]);
  const { signal } = link;
  const zstd = createZstdDecompress();
  const failures: unknown[] = [];
  const fed = pipeline(noting(readParts({ signal }), failures), zstd, { signal }).catch(() => undefined);
  try {
    yield* countTo(record, zstd, signal);
  } catch (thrown) {
    call.signal.throwIfAborted();
    // zstd fails as well if a part does, and says less about it.
    if (failures.length > 0) throw failures[0];
    throw thrown instanceof SandboxError ? thrown : wrongContent(record, thrown);
  } finally {
    link.abort(CLOSED);
    zstd.destroy();
    await fed;
  }
}

async function* countTo(record: ObjectRecord, zstd: ZstdDecompress, signal: AbortSignal): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of zstd as AsyncIterable<Buffer>) {
    signal.throwIfAborted();
    bytes += chunk.byteLength;
    if (bytes > record.plainBytes) break;
    yield chunk;
  }
  if (bytes !== record.plainBytes) throw wrongContent(record);
}

async function* noting(parts: AsyncIterable<Buffer>, failures: unknown[]): AsyncGenerator<Buffer> {
  try {
    yield* parts;
  } catch (thrown) {
    failures.push(thrown);
    throw thrown;
  }
}

const wrongContent = (record: ObjectRecord, cause?: unknown): SandboxError =>
  damaged(`object ${record.id}: does not decompress to ${record.plainBytes} bytes`, {
    fault: "wrong content",
    object: record.id,
    cause,
  });
