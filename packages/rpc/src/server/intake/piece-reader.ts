/** Reads a body by lengths and not by the pieces in which it comes. What it keeps grows with what has come, not with what was promised. */
export class PieceReader {
  readonly #source: AsyncIterator<Uint8Array>;
  /** What came and was not asked for yet. */
  #rest: Uint8Array | undefined;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /**
   * Up to `count` bytes: less only if the body ends before. The sum so far is shown to `onBytes`, whose throw ends the
   * reading. What came in one piece is not copied.
   */
  async read(count: number, onBytes: (sum: number) => void = ignore): Promise<Uint8Array> {
    const first = await this.#pull();
    if (first === undefined) return NOTHING;
    onBytes(Math.min(first.length, count));
    if (first.length >= count) return this.#cut(first, count);
    const second = await this.#pull();
    if (second === undefined) return first;
    const joined = new JoinedPieces();
    joined.add(first);
    for (let piece: Uint8Array | undefined = second; piece !== undefined; piece = await this.#pull()) {
      const taken = this.#cut(piece, Math.min(piece.length, count - joined.length));
      onBytes(joined.length + taken.length);
      joined.add(taken);
      if (joined.length === count) break;
    }
    return joined.whole();
  }

  async return(): Promise<void> {
    await this.#source.return?.();
  }

  /** Undefined at the end of the body. */
  async #pull(): Promise<Uint8Array | undefined> {
    const rest = this.#rest;
    this.#rest = undefined;
    if (rest !== undefined) return rest;
    for (;;) {
      const piece = await this.#source.next();
      if (piece.done === true) return undefined;
      if (piece.value.length > 0) return piece.value;
    }
  }

  /** The first bytes of a piece; the others are kept for who asks next. */
  #cut(piece: Uint8Array, count: number): Uint8Array {
    if (piece.length === count) return piece;
    this.#rest = piece.subarray(count);
    return piece.subarray(0, count);
  }
}

const NOTHING = new Uint8Array(0);
/** Shorter pieces are put together: one of a single byte takes a hundred times as much. */
const LONG_BYTES = 8 * 1024;
const SLAB_BYTES = 64 * 1024;

const ignore = (): void => undefined;

class JoinedPieces {
  length = 0;
  readonly #pieces: Uint8Array[] = [];
  #slab: Buffer | undefined;
  #used = 0;

  add(piece: Uint8Array): void {
    this.length += piece.length;
    if (piece.length >= LONG_BYTES) {
      this.#closeSlab();
      this.#pieces.push(piece);
      return;
    }
    if (this.#slab !== undefined && this.#used + piece.length > SLAB_BYTES) this.#closeSlab();
    this.#slab ??= Buffer.allocUnsafe(SLAB_BYTES);
    this.#slab.set(piece, this.#used);
    this.#used += piece.length;
  }

  whole(): Uint8Array {
    this.#closeSlab();
    return Buffer.concat(this.#pieces, this.length);
  }

  #closeSlab(): void {
    if (this.#slab !== undefined) this.#pieces.push(this.#slab.subarray(0, this.#used));
    this.#slab = undefined;
    this.#used = 0;
  }
}
