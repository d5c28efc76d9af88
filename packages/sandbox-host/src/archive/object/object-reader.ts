import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdDecompress, type ZstdDecompress } from "node:zlib";
import { type Call, linkSignals, raceSignal, SandboxError } from "@turnbox/core";
import type { DataKey } from "../../key-wrap/data-key.ts";
import type { ObjectStore } from "../../object-store/object-store.ts";
import { damaged } from "../damage.ts";
import type { ObjectRecord } from "./object-record.ts";
import { PartReader } from "./part-reader.ts";
import { PlainStream } from "./plain-stream.ts";

const CLOSED = new Error("the reader was closed");

export interface ObjectReaderOptions {
  readonly store: ObjectStore;
  /** Parts that are fetched ahead of the one that is read. Each is in memory. Default 2. */
  readonly ahead?: number;
}

/** Reads objects. No byte of a part is handed out before all of the part is known to be right. */
export class ObjectReader {
  readonly #store: ObjectStore;
  readonly #ahead: number;

  constructor({ store, ahead = 2 }: ObjectReaderOptions) {
    this.#store = store;
    this.#ahead = ahead;
  }

  /**
   * The bytes that were written. The stream fails with `ARCHIVE_DAMAGED` at the first part that is missing or wrong, and with the
   * signal's reason. Read it to its end or destroy it.
   */
  read(record: ObjectRecord, key: DataKey, call: Call): Readable {
    return new PlainStream((inner) => this.#plain(record, key, inner), call);
  }

  async *#plain(record: ObjectRecord, key: DataKey, call: Call): AsyncGenerator<Buffer> {
    using link = linkSignals([call.signal]);
    const { signal } = link;
    const zstd = createZstdDecompress();
    const failures: unknown[] = [];
    const parts = noting(this.#parts(record, key, { signal }), failures);
    const fed = pipeline(parts, zstd, { signal }).catch(() => undefined);
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

  /** The compressed bytes of all parts, with a bounded number of them fetched ahead. */
  async *#parts(record: ObjectRecord, key: DataKey, call: Call): AsyncGenerator<Buffer> {
    using link = linkSignals([call.signal]);
    using reader = new PartReader(this.#store, record, key);
    const fetched: Promise<Buffer>[] = [];
    try {
      for (let next = 0; next < record.parts.length || fetched.length > 0; ) {
        for (; next < record.parts.length && fetched.length <= this.#ahead; next += 1) {
          const part = reader.read(next, { signal: link.signal });
          part.catch(() => undefined);
          fetched.push(part);
        }
        const [first] = fetched;
        if (first === undefined) return;
        const part = await raceSignal(first, link.signal);
        fetched.shift();
        yield part;
      }
    } finally {
      link.abort(CLOSED);
      await Promise.allSettled(fetched);
    }
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
