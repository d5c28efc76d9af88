import type { Shares } from "./shares.ts";

/** Items that wait, in one queue for each key. The key that holds least is next; keys that hold the same take turns. */
export class FairQueue<Item> {
  /** In the order of their turns. */
  readonly #queues = new Map<string, Item[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  sizeOf(key: string): number {
    return this.#queues.get(key)?.length ?? 0;
  }

  push(key: string, item: Item): void {
    const queue = this.#queues.get(key) ?? [];
    queue.push(item);
    this.#queues.set(key, queue);
    this.#size += 1;
  }

  /** Removes an item that does not wait any more. */
  remove(key: string, item: Item): void {
    const queue = this.#queues.get(key) ?? [];
    const at = queue.indexOf(item);
    if (at < 0) return;
    queue.splice(at, 1);
    this.#size -= 1;
    if (queue.length === 0) this.#queues.delete(key);
  }

  /** The key whose turn it is; undefined if no key that waits has room. */
  nextKey(shares: Shares): string | undefined {
    let next: string | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const key of this.#queues.keys()) {
      const held = shares.heldBy(key);
      if (held >= least || !shares.hasRoom(key)) continue;
      next = key;
      least = held;
    }
    return next;
  }

  /** Takes the first item of a key, whose next turn is after all others. */
  shift(key: string): Item | undefined {
    const queue = this.#queues.get(key);
    const item = queue?.shift();
    if (queue === undefined || item === undefined) return undefined;
    this.#size -= 1;
    this.#queues.delete(key);
    if (queue.length > 0) this.#queues.set(key, queue);
    return item;
  }

  /** Takes everything. */
  drain(): readonly Item[] {
    const all = [...this.#queues.values()].flat();
    this.#queues.clear();
    this.#size = 0;
    return all;
  }
}
