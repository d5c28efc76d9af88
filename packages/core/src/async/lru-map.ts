/** A map of at most so many entries: beyond that, the one that was not used for longest goes. */
export class LruMap<Key, Value> {
  /** The order of insertion is the order of use. */
  readonly #entries = new Map<Key, Value>();
  readonly #max: number;

  /** `max`: a whole number from 1 on. */
  constructor(max: number) {
    if (!Number.isSafeInteger(max) || max < 1) throw new RangeError("a bounded map holds at least one entry");
    this.#max = max;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Counts as use. An entry with the value undefined is as good as none. */
  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  /** Does not count as use. */
  has(key: Key): boolean {
    return this.#entries.has(key);
  }

  /** Counts as use. Returns the entry that had to go, if one had to. */
  set(key: Key, value: Value): readonly [Key, Value] | undefined {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#max) return undefined;
    const [oldest] = this.#entries;
    if (oldest !== undefined) this.#entries.delete(oldest[0]);
    return oldest;
  }

  delete(key: Key): boolean {
    return this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** From the one that was not used for longest to the latest. */
  entries(): IterableIterator<[Key, Value]> {
    return this.#entries.entries();
  }
}
