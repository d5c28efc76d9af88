import { createHash } from "node:crypto";
import { type Call, type Clock, hasReason, SandboxError } from "@turnbox/core";
import type { ObjectStore } from "../../object-store/object-store.ts";
import { damaged } from "../damage.ts";
import { GRACE_MS, MAX_PARTS } from "../format.ts";
import type { BoundedWork } from "./bounded-work.ts";
import { type ObjectRecord, partKey, type PartRecord } from "./object-record.ts";
import { hashInto, type PartCipher } from "./part-cipher.ts";

export interface PartUploadOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly partBytes: number;
}

export interface PartWork {
  readonly cipher: PartCipher;
  readonly work: BoundedWork;
}

/** The parts of one object on their way to the store. */
export class PartUploads {
  readonly #options: PartUploadOptions;
  readonly #cipher: PartCipher;
  readonly #work: BoundedWork;
  readonly #startedMs: number;
  readonly #whole = createHash("sha256");
  readonly #parts: PartRecord[] = [];

  constructor(options: PartUploadOptions, { cipher, work }: PartWork) {
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

/**
 * Cuts a stream into parts of a size. It holds back what it has until more comes: which part is the last one is known only at
 * the end. A part that it hands out is valid until the next one is asked for.
 */
class PartCutter {
  readonly #part: Buffer;
  #filled = 0;

  constructor(partBytes: number) {
    this.#part = Buffer.allocUnsafe(partBytes);
  }

  /** Takes in the chunk, and hands out each part that is full and not the last one. */
  *cut(chunk: Uint8Array): Generator<Buffer> {
    for (let taken = 0; taken < chunk.byteLength; ) {
      if (this.#filled === this.#part.byteLength) {
        yield this.#part;
        this.#filled = 0;
      }
      const piece = chunk.subarray(taken, taken + this.#part.byteLength - this.#filled);
      this.#part.set(piece, this.#filled);
      this.#filled += piece.byteLength;
      taken += piece.byteLength;
    }
  }

  /** The last part. */
  rest(): Buffer {
    return this.#part.subarray(0, this.#filled);
  }
}
