import { createCipheriv, createDecipheriv, createHash, type Hash } from "node:crypto";
import type { DataKey } from "../../key-wrap/data-key.ts";
import { FORMAT, NONCE_BYTES, OBJECT_INFO, SALT_BYTES, TAG_BYTES } from "../format.ts";

const MAGIC = "turnbox part";
const ZSTD = 1;
/** How much is hashed or encrypted before others get their turn on this thread. */
const SLICE_BYTES = 1024 * 1024;

/** Which part of an object it is. It is authenticated with the part. */
export interface PartPosition {
  readonly index: number;
  readonly isLast: boolean;
}

/** Encrypts and decrypts the parts of one object. */
export class PartCipher implements Disposable {
  readonly #key: Buffer;
  readonly #salt: Uint8Array;

  /** `salt`: of the object; no two objects under a data key have the same one. */
  constructor(dataKey: DataKey, salt: Uint8Array) {
    if (salt.byteLength !== SALT_BYTES) throw new RangeError(`a salt has ${SALT_BYTES} bytes`);
    this.#key = dataKey.derive(salt, OBJECT_INFO);
    this.#salt = salt;
  }

  /** The part as it is stored: as many bytes as `compressed`, and the tag. */
  async encrypt(compressed: Uint8Array, position: PartPosition): Promise<Buffer> {
    const cipher = createCipheriv("aes-256-gcm", this.#key, nonceOf(position));
    cipher.setAAD(this.#associated(position));
    const stored = Buffer.allocUnsafe(compressed.byteLength + TAG_BYTES);
    let filled = 0;
    for await (const slice of slices(compressed)) filled += cipher.update(slice).copy(stored, filled);
    filled += cipher.final().copy(stored, filled);
    cipher.getAuthTag().copy(stored, filled);
    return stored;
  }

  /** What was encrypted, or undefined if `stored` is not the part of this object and position. */
  async decrypt(stored: Uint8Array, position: PartPosition): Promise<Buffer | undefined> {
    const end = stored.byteLength - TAG_BYTES;
    if (end < 0) return undefined;
    const decipher = createDecipheriv("aes-256-gcm", this.#key, nonceOf(position), { authTagLength: TAG_BYTES });
    decipher.setAAD(this.#associated(position));
    decipher.setAuthTag(stored.subarray(end));
    const compressed = Buffer.allocUnsafe(end);
    let filled = 0;
    for await (const slice of slices(stored.subarray(0, end)))
      filled += decipher.update(slice).copy(compressed, filled);
    try {
      decipher.final();
    } catch {
      compressed.fill(0);
      return undefined;
    }
    return compressed;
  }

  /** Fills the key with zeros. */
  [Symbol.dispose](): void {
    this.#key.fill(0);
  }

  #associated({ index, isLast }: PartPosition): Buffer {
    const rest = Buffer.alloc(5);
    rest.writeUInt32BE(index);
    rest.writeUInt8(isLast ? 1 : 0, 4);
    return Buffer.concat([Buffer.from(MAGIC), Buffer.from([FORMAT, ZSTD]), this.#salt, rest]);
  }
}

/** Counts in each object from 0, and each object has a key of its own: no nonce is used twice under a key. */
function nonceOf({ index }: PartPosition): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES);
  nonce.writeUInt32BE(index, NONCE_BYTES - 4);
  return nonce;
}

/** Adds the bytes to each of the hashes. */
export async function hashInto(bytes: Uint8Array, ...hashes: readonly Hash[]): Promise<void> {
  for await (const slice of slices(bytes)) for (const hash of hashes) hash.update(slice);
}

export async function sha256Of(bytes: Uint8Array): Promise<string> {
  const hash = createHash("sha256");
  await hashInto(bytes, hash);
  return hash.digest("hex");
}

async function* slices(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < bytes.byteLength; offset += SLICE_BYTES) {
    if (offset > 0) await new Promise<void>((resolve) => setImmediate(resolve));
    yield bytes.subarray(offset, offset + SLICE_BYTES);
  }
}
