import { randomBytes } from "node:crypto";
import { type Call, SandboxError } from "@turnbox/core";
import { DataKey } from "../data-key.ts";
import type { KeyContext, KeyWrap, WrappedKey } from "../key-wrap.ts";

interface Kept {
  readonly context: KeyContext;
  readonly plain: Buffer;
}

/** A key in memory. What it has wrapped is what it remembers. */
export class FakeKey {
  readonly id: string;
  readonly wrapped = new Map<string, Kept>();

  constructor(id = `fake:${randomBytes(8).toString("hex")}`) {
    this.id = id;
  }
}

/** Wraps in memory, for tests: what has the same `FakeKey` unwraps. */
export class FakeKeyWrap implements KeyWrap {
  readonly kind = "fake";
  readonly #keys: readonly FakeKey[];

  /** `keys`: the oldest first. */
  constructor(...keys: readonly FakeKey[]) {
    this.#keys = keys.length === 0 ? [new FakeKey()] : keys;
  }

  async wrap(key: DataKey, context: KeyContext, { signal }: Call): Promise<WrappedKey> {
    signal.throwIfAborted();
    const newest = this.#keys.at(-1);
    if (newest === undefined) throw new RangeError("there is no key to wrap by");
    const bytes = randomBytes(48);
    newest.wrapped.set(bytes.toString("hex"), { context, plain: key.reveal() });
    return { keyId: newest.id, bytes };
  }

  async unwrap({ keyId, bytes }: WrappedKey, context: KeyContext, { signal }: Call): Promise<DataKey> {
    signal.throwIfAborted();
    const key = this.#keys.find(({ id }) => id === keyId);
    if (key === undefined)
      throw new SandboxError("ARCHIVE_KEY_WRONG", `the key ${keyId} is needed`, { metadata: { keyId } });
    const kept = key.wrapped.get(Buffer.from(bytes).toString("hex"));
    if (kept === undefined || show(kept.context) !== show(context))
      throw new SandboxError("ARCHIVE_DAMAGED", `the data key that is wrapped by ${keyId} was changed`, {
        metadata: { keyId, fault: "wrapped key" },
      });
    return new DataKey(kept.plain);
  }
}

const show = ({ tenant, kind, id, format }: KeyContext): string => JSON.stringify([tenant, kind, id, format]);
