import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { type Call, SandboxError } from "@turnbox/core";
import { DATA_KEY_BYTES, DataKey } from "../data-key.ts";
import type { KeyContext, KeyWrap, WrappedKey } from "../key-wrap.ts";
import type { WrappingKey } from "./key-file.ts";

const INFO = "turnbox archive key wrap 1";
const SALT_BYTES = 32;
const TAG_BYTES = 16;
const WRAPPED_BYTES = SALT_BYTES + DATA_KEY_BYTES + TAG_BYTES;
/** One nonce is enough: the key under it is derived from a fresh salt for each data key. */
const NONCE = Buffer.alloc(12);

/** Wraps under keys that the host holds itself: salt, encrypted data key and tag are 80 bytes. */
export class FileKeyWrap implements KeyWrap {
  readonly kind = "file";
  readonly #keys: ReadonlyMap<string, WrappingKey>;
  readonly #newest: WrappingKey;

  /** `keys`: the oldest first. */
  constructor(keys: readonly WrappingKey[]) {
    const newest = keys.at(-1);
    if (newest === undefined) throw new RangeError("there is no key to wrap by");
    this.#newest = newest;
    this.#keys = new Map(keys.map((key) => [key.id, key]));
  }

  async wrap(key: DataKey, context: KeyContext, { signal }: Call): Promise<WrappedKey> {
    signal.throwIfAborted();
    const salt = randomBytes(SALT_BYTES);
    const keyId = this.#newest.id;
    const cipher = createCipheriv("aes-256-gcm", derive(this.#newest, salt), NONCE);
    cipher.setAAD(encodeContext(keyId, context));
    const plain = key.reveal();
    const encrypted = Buffer.concat([cipher.update(plain), cipher.final()]);
    plain.fill(0);
    return { keyId, bytes: Buffer.concat([salt, encrypted, cipher.getAuthTag()]) };
  }

  async unwrap(wrapped: WrappedKey, context: KeyContext, { signal }: Call): Promise<DataKey> {
    signal.throwIfAborted();
    const { keyId } = wrapped;
    const key = this.#keys.get(keyId);
    if (key === undefined)
      throw new SandboxError("ARCHIVE_KEY_WRONG", `the key ${keyId} is needed, and the key file does not hold it`, {
        metadata: { keyId },
      });
    if (wrapped.bytes.byteLength !== WRAPPED_BYTES) throw damaged(keyId, "has a wrong length");
    return open(key, Buffer.from(wrapped.bytes), context);
  }
}

function open(key: WrappingKey, bytes: Buffer, context: KeyContext): DataKey {
  const decipher = createDecipheriv("aes-256-gcm", derive(key, bytes.subarray(0, SALT_BYTES)), NONCE);
  decipher.setAAD(encodeContext(key.id, context));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  const plain = decipher.update(bytes.subarray(SALT_BYTES, -TAG_BYTES));
  try {
    decipher.final();
    return new DataKey(plain);
  } catch (cause) {
    throw damaged(key.id, "was changed, or was wrapped for another owner", cause);
  } finally {
    plain.fill(0);
  }
}

const derive = (key: WrappingKey, salt: Buffer): Buffer =>
  Buffer.from(hkdfSync("sha256", key.bytes, salt, INFO, DATA_KEY_BYTES));

/** Each field with its length in front, so that no two contexts are the same bytes. */
function encodeContext(keyId: string, { tenant, kind, id, format }: KeyContext): Buffer {
  const fields = [INFO, String(format), keyId, tenant, kind, id].map((field) => Buffer.from(field));
  return Buffer.concat(
    fields.flatMap((field) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(field.byteLength);
      return [length, field];
    }),
  );
}

const damaged = (keyId: string, what: string, cause?: unknown): SandboxError =>
  new SandboxError("ARCHIVE_DAMAGED", `the data key that is wrapped by ${keyId} ${what}`, {
    metadata: { keyId, fault: "wrapped key" },
    cause,
  });
