import { createHash, randomBytes } from "node:crypto";
import { pipeline } from "node:stream/promises";
import { createZstdCompress } from "node:zlib";
import { type Call, type Clock, hasReason, raceSignal, SandboxError } from "@turnbox/core";
import type { DataKey } from "../../key-wrap/data-key.ts";
import type { ObjectStore } from "../../object-store/object-store.ts";
import { damaged } from "../damage.ts";
import { FORMAT, GRACE_MS, MAX_PARTS, PART_BYTES, SALT_BYTES } from "../format.ts";
import { BoundedWork } from "./bounded-work.ts";
import { type ObjectRecord, partKey, type PartRecord } from "./object-record.ts";
import { hashInto, PartCipher } from "./part-cipher.ts";
import { PartCutter } from "./part-cutter.ts";

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

interface PartWork {
  readonly cipher: PartCipher;
  readonly work: BoundedWork;
}

/** The parts of one object on their way to the store. */
class PartUploads {
  readonly #options: Required<ObjectWriterOptions>;
  readonly #cipher: PartCipher;
  readonly #work: BoundedWork;
  readonly #startedMs: number;
  readonly #whole = createHash("sha256");
  readonly #parts: PartRecord[] = [];

  constructor(options: Required<ObjectWriterOptions>, { cipher, work }: PartWork) {
    this.#options = options;
    this.#cipher = cipher;
    this.#work = work;
    this.#startedMs = options.clock.monotonicMs();
  }

  async take(compressed: AsyncIterable<Uint8Array>): Promise<void> {
    const cutter = new PartCutter(this.#options.partBytes);
    for await (const chunk of compressed) for (const part of cutter.cut(chunk)) await this.#send(part, false);
    await this.#send(cutter.rest(), true);
  }

  summary(): Pick<ObjectRecord, "id" | "parts" | "storedBytes"> {
    const storedBytes = this.#parts.reduce((sum, { bytes }) => sum + bytes, 0);
    return { id: this.#whole.digest("hex"), parts: this.#parts, storedBytes };
  }

  async #send(compressed: Buffer, isLast: boolean): Promise<void> {
    const index = this.#parts.length;
    if (index === MAX_PARTS)
      throw new SandboxError("INVALID_ARGUMENT", `the stream has more than ${MAX_PARTS} parts`, {
        metadata: { field: "source" },
      });
    if (this.#options.clock.monotonicMs() - this.#startedMs > GRACE_MS / 2)
      throw new SandboxError("DEADLINE_EXCEEDED", "the object was not stored within half of the grace time");
    await this.#work.start(async () => {
      const bytes = await this.#cipher.encrypt(compressed, { index, isLast });
      const hash = createHash("sha256");
      await hashInto(bytes, hash, this.#whole);
      const part = { sha256: hash.digest("hex"), bytes: bytes.byteLength };
      this.#parts.push(part);
      return async (call) => await putPart(this.#options.store, { part, bytes }, call);
    });
  }
}

/** A part that is there already is as good: its key says what it holds. */
async function putPart(
  store: ObjectStore,
  { part, bytes }: { readonly part: PartRecord; readonly bytes: Buffer },
  call: Call,
): Promise<void> {
  const key = partKey(part.sha256);
  try {
    await store.put(key, bytes, { condition: { kind: "absent" } }, call);
  } catch (failure) {
    if (!hasReason(failure, "OBJECT_CHANGED")) throw failure;
    const there = await store.stat(key, call);
    if (there?.bytes !== part.bytes)
      throw damaged(`what is stored as part ${part.sha256} is not that part`, { fault: "wrong size", cause: failure });
  }
}
