import { type Call, hasReason, SandboxError } from "@turnbox/core";
import type { DataKey } from "../../key-wrap/data-key.ts";
import type { ObjectStore } from "../../object-store/object-store.ts";
import { damaged, type Fault } from "../damage.ts";
import { readBody } from "../read-bounded.ts";
import { type ObjectRecord, partKey } from "./object-record.ts";
import { PartCipher, sha256Of } from "./part-cipher.ts";

/** Reads parts of one object. It hands out a part when all of it is known to be right, and nothing of one that is not. */
export class PartReader implements Disposable {
  readonly #store: ObjectStore;
  readonly #record: ObjectRecord;
  readonly #cipher: PartCipher;

  /** Fails with `ARCHIVE_KEY_WRONG` if the object is encrypted under another data key. */
  constructor(store: ObjectStore, record: ObjectRecord, key: DataKey) {
    if (key.id !== record.key)
      throw new SandboxError("ARCHIVE_KEY_WRONG", `object ${record.id} needs the data key ${record.key}`, {
        metadata: { keyId: record.key, object: record.id },
      });
    this.#store = store;
    this.#record = record;
    this.#cipher = new PartCipher(key, Buffer.from(record.salt, "hex"));
  }

  /** The compressed bytes of a part. */
  async read(index: number, call: Call): Promise<Buffer> {
    const stored = await this.#fetch(index, call);
    if ((await sha256Of(stored)) !== this.#part(index).sha256) throw this.#damaged(index, "wrong digest");
    const isLast = index === this.#record.parts.length - 1;
    const compressed = await this.#cipher.decrypt(stored, { index, isLast });
    call.signal.throwIfAborted();
    if (compressed === undefined) throw this.#damaged(index, "not authentic");
    return compressed;
  }

  /** Fails if the store does not have the part in its size. It reads nothing of it. */
  async look(index: number, call: Call): Promise<void> {
    const { sha256, bytes } = this.#part(index);
    const there = await this.#store.stat(partKey(sha256), call);
    if (there === undefined) throw this.#damaged(index, "missing");
    if (there.bytes !== bytes) throw this.#damaged(index, "wrong size");
  }

  [Symbol.dispose](): void {
    this.#cipher[Symbol.dispose]();
  }

  async #fetch(index: number, call: Call): Promise<Buffer> {
    const { sha256, bytes } = this.#part(index);
    try {
      const found = await this.#store.get(partKey(sha256), {}, call);
      const stored = await readBody(found.body, found.bytes === bytes ? bytes : undefined, call);
      if (stored !== undefined) return stored;
    } catch (failure) {
      if (hasReason(failure, "OBJECT_NOT_FOUND")) throw this.#damaged(index, "missing", failure);
      if (hasReason(failure, "OBJECT_DAMAGED")) throw this.#damaged(index, "wrong digest", failure);
      throw failure;
    }
    throw this.#damaged(index, "wrong size");
  }

  #part(index: number): ObjectRecord["parts"][number] {
    const part = this.#record.parts[index];
    if (part === undefined) throw new RangeError(`there is no part ${index}`);
    return part;
  }

  #damaged(part: number, fault: Fault, cause?: unknown): SandboxError {
    const { id, parts } = this.#record;
    return damaged(`object ${id}, part ${part} of ${parts.length}: ${fault}`, { fault, object: id, part, cause });
  }
}
