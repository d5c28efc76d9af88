import { DIGEST_BYTES } from "../sweep-list/sweep-list.ts";

/** Digests begin with a number below this. */
export const END_OF_DIGESTS = 2 ** 32;
const MOST_FULL = 0.75;

/**
 * A set of digests in a bounded number of bytes. When it is full it gives up the upper half of its range, and takes in no
 * digests of that half from then on: what it holds of the rest is complete. The caller goes on with another set from `end` on.
 */
export class DigestSet {
  readonly start: number;
  #end = END_OF_DIGESTS;
  /** By what a digest begins with, the next free slot after it if that is taken. A slot of zeros is free. */
  readonly #slots: Buffer;
  #size = 0;

  /** `capacity`: slots of 32 bytes each. */
  constructor({ start, capacity }: { readonly start: number; readonly capacity: number }) {
    this.start = start;
    this.#slots = Buffer.alloc(capacity * DIGEST_BYTES);
  }

  /** Digests that begin with this number or a higher one are not in the set. */
  get end(): number {
    return this.#end;
  }

  get size(): number {
    return this.#size;
  }

  /** Whether the range of the set covers the digest. */
  covers(digest: Buffer): boolean {
    const begin = digest.readUInt32BE();
    return begin >= this.start && begin < this.#end;
  }

  add(digest: Buffer): void {
    if (!this.covers(digest)) return;
    const slot = this.#find(digest);
    if (!this.#isFree(slot)) return;
    digest.copy(this.#slots, slot * DIGEST_BYTES);
    this.#size += 1;
    while (this.#size > MOST_FULL * this.#capacity) this.#narrow();
  }

  has(digest: Buffer): boolean {
    return this.covers(digest) && !this.#isFree(this.#find(digest));
  }

  get #capacity(): number {
    return this.#slots.byteLength / DIGEST_BYTES;
  }

  /** The slot that holds the digest, or the one that it would be put into. */
  #find(digest: Buffer): number {
    let slot = digest.readUInt32BE(4) % this.#capacity;
    while (!this.#isFree(slot) && !this.#at(slot).equals(digest)) slot = (slot + 1) % this.#capacity;
    return slot;
  }

  #at(slot: number): Buffer {
    return this.#slots.subarray(slot * DIGEST_BYTES, (slot + 1) * DIGEST_BYTES);
  }

  #isFree(slot: number): boolean {
    return this.#slots.readBigUInt64LE(slot * DIGEST_BYTES) === 0n;
  }

  #narrow(): void {
    if (this.#end - this.start <= 1) throw new RangeError("the set is too small for digests that begin alike");
    this.#end = this.start + Math.ceil((this.#end - this.start) / 2);
    const all = Buffer.from(this.#slots);
    this.#slots.fill(0);
    this.#size = 0;
    for (let offset = 0; offset < all.byteLength; offset += DIGEST_BYTES) {
      const digest = all.subarray(offset, offset + DIGEST_BYTES);
      if (all.readBigUInt64LE(offset) === 0n || !this.covers(digest)) continue;
      digest.copy(this.#slots, this.#find(digest) * DIGEST_BYTES);
      this.#size += 1;
    }
  }
}
