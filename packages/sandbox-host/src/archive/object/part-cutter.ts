/**
 * Cuts a stream into parts of a size. It holds back what it has until more comes: which part is the last one is known only at
 * the end. A part that it hands out is valid until the next one is asked for.
 */
export class PartCutter {
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
