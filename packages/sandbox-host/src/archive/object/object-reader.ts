import type { Readable } from "node:stream";
import { type Call, linkSignals, raceSignal } from "@turnbox/core";
import type { DataKey } from "../../key-wrap/data-key.ts";
import type { ObjectStore } from "../../object-store/object-store.ts";
import type { ObjectRecord } from "./object-record.ts";
import { PartReader } from "./part-reader.ts";
import { decompress, PlainStream } from "./plain-stream.ts";

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
    return new PlainStream((open) => decompress((needed) => this.#parts(record, key, needed), record, open), call);
  }

  /** The compressed bytes of all parts, with a bounded number of them fetched ahead. */
  async *#parts(record: ObjectRecord, key: DataKey, call: Call): AsyncGenerator<Buffer> {
    using link = linkSignals([call.signal]);
    using reader = new PartReader(this.#store, record, key);
    let fetched: Promise<Buffer>[] = [];
    try {
      for (let next = 0; next < record.parts.length || fetched.length > 0; ) {
        for (; next < record.parts.length && fetched.length <= this.#ahead; next += 1) {
          const part = reader.read(next, { signal: link.signal });
          part.catch(() => undefined);
          fetched.push(part);
        }
        const [first, ...rest] = fetched;
        if (first === undefined) return;
        const part = await raceSignal(first, link.signal);
        fetched = rest;
        yield part;
      }
    } finally {
      link.abort(CLOSED);
      await Promise.allSettled(fetched);
    }
  }
}
