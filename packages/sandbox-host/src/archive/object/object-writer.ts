import { randomBytes } from "node:crypto";
import { pipeline } from "node:stream/promises";
import { createZstdCompress } from "node:zlib";
import { type Call, type Clock, raceSignal } from "@turnbox/core";
import type { DataKey } from "../../key-wrap/data-key.ts";
import type { ObjectStore } from "../../object-store/object-store.ts";
import { FORMAT, PART_BYTES, SALT_BYTES } from "../format.ts";
import { BoundedWork } from "./bounded-work.ts";
import type { ObjectRecord } from "./object-record.ts";
import { PartCipher } from "./part-cipher.ts";
import { PartUploads } from "./part-uploads.ts";

export interface ObjectWriterOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  /** Parts that are sent at the same time. Each, and one more, is in memory. Default 3. */
  readonly uploads?: number;
  /** Default `PART_BYTES`, which is the most. */
  readonly partBytes?: number;
  /** Where salts come from; random bytes by default. One that gives a salt twice breaks the encryption. */
  readonly salt?: () => Buffer;
}

/**
 * Turns streams of bytes into objects: compressed, cut into parts, encrypted and stored. Memory is bounded by the number of
 * uploads. It does not resume: each attempt has a salt of its own, and so other parts. Those of an attempt that failed are named
 * by nothing, and the garbage collection removes them.
 */
export class ObjectWriter {
  readonly #options: Required<ObjectWriterOptions>;

  constructor(options: ObjectWriterOptions) {
    this.#options = { uploads: 3, partBytes: PART_BYTES, salt: () => randomBytes(SALT_BYTES), ...options };
  }

  /**
   * Resolves when all parts are stored; the record is then to be named by a manifest. Fails with what `source` fails with, and
   * with `DEADLINE_EXCEEDED` if it takes more than half of the grace time, within which garbage collection leaves the parts alone.
   */
  async write(source: AsyncIterable<Uint8Array>, key: DataKey, call: Call): Promise<ObjectRecord> {
    call.signal.throwIfAborted();
    const salt = this.#options.salt();
    using cipher = new PartCipher(key, salt);
    using work = new BoundedWork(this.#options.uploads, call);
    const parts = new PartUploads(this.#options, { cipher, work });
    const zstd = createZstdCompress();
    try {
      await raceSignal(
        pipeline(source, zstd, (compressed: AsyncIterable<Uint8Array>) => parts.take(compressed), {
          signal: work.signal,
        }),
        work.signal,
      );
      await work.finish();
    } catch (failure) {
      await work.cancel(failure);
      throw failure;
    }
    return {
      ...parts.summary(),
      format: FORMAT,
      key: key.id,
      compression: "zstd",
      salt: salt.toString("hex"),
      partBytes: this.#options.partBytes,
      plainBytes: zstd.bytesWritten,
    };
  }
}
