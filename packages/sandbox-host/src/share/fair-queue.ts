import type { Shares } from "./shares.ts";

/** Items that wait, in one line for each key. The key that holds least goes first; among equals the lines take turns. */
export class FairQueue<Item> {
  /** In the order in which the lines have their turn. */
  readonly #lines = new Map<string, Item[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  sizeOf(key: string): number {
    return this.#lines.get(key)?.length ?? 0;
  }

  push(key: string, item: Item): void {
    const line = this.#lines.get(key) ?? [];
    line.push(item);
    this.#lines.set(key, line);
    this.#size += 1;
  }

  /** Takes out an item that does not wait any more. */
  remove(key: string, item: Item): void {
    const line = this.#lines.get(key) ?? [];
    const at = line.indexOf(item);
    if (at < 0) return;
    line.splice(at, 1);
    this.#size -= 1;
    if (line.length === 0) this.#lines.delete(key);
  }

  /** The key whose turn it is; undefined if no key that waits has room. */
  nextKey(shares: Shares): string | undefined {
    let next: string | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const key of this.#lines.keys()) {
      const held = shares.heldBy(key);
      if (held >= least || !shares.hasRoom(key)) continue;
      next = key;
      least = held;
    }
    return next;
  }

  /** Takes the first item of a key, whose line has its next turn after all others. */
  shift(key: string): Item | undefined {
    const line = this.#lines.get(key);
    const item = line?.shift();
    if (line === undefined || item === undefined) return undefined;
    this.#size -= 1;
    this.#lines.delete(key);
    if (line.length > 0) this.#lines.set(key, line);
    return item;
  }

  /** Takes out everything. */
  drain(): readonly Item[] {
    const all = [...this.#lines.values()].flat();
    this.#lines.clear();
    this.#size = 0;
    return all;
  }
}
