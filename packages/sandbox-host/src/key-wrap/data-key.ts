import { hkdfSync, randomBytes } from "node:crypto";
import { inspect } from "node:util";

export const DATA_KEY_BYTES = 32;
const REDACTED = "[data key]";
const ID_INFO = "turnbox archive data key id 1";
const ID_BYTES = 16;

/**
 * The key that everything of one owner is encrypted under. Like a `Secret` it does not print. Its bytes leave it in two ways
 * only: `derive` gives a key for one purpose, `reveal` a copy for what wraps it.
 */
export class DataKey implements Disposable {
  readonly #bytes: Buffer;
  /** The fingerprint of the key, 32 hex digits. It says nothing about the key. */
  readonly id: string;

  /** Takes a copy of `bytes`. */
  constructor(bytes: Uint8Array) {
    if (bytes.byteLength !== DATA_KEY_BYTES) throw new RangeError(`a data key has ${DATA_KEY_BYTES} bytes`);
    this.#bytes = Buffer.from(bytes);
    this.id = this.derive(Buffer.alloc(0), ID_INFO).toString("hex", 0, ID_BYTES);
  }

  static random(): DataKey {
    const bytes = randomBytes(DATA_KEY_BYTES);
    const key = new DataKey(bytes);
    bytes.fill(0);
    return key;
  }

  /** A key of 32 bytes for what `info` names. Another salt or another purpose gives a key that has nothing to do with it. */
  derive(salt: Uint8Array, info: string): Buffer {
    return Buffer.from(hkdfSync("sha256", this.#bytes, salt, info, DATA_KEY_BYTES));
  }

  /** A copy of the bytes, which the caller fills with zeros after use. */
  reveal(): Buffer {
    return Buffer.from(this.#bytes);
  }

  /** Fills the key with zeros. It is of no use afterwards. */
  [Symbol.dispose](): void {
    this.#bytes.fill(0);
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}
