import { createRandom } from "../random.ts";

/** All chance of one input: the same seed and name give the same choices. */
export class Chance {
  readonly #random: () => number;

  constructor(seed: number, name: string) {
    this.#random = createRandom(mix(seed, name));
  }

  /** Whether something of this probability happens. */
  happens(probability: number): boolean {
    return this.#random() < probability;
  }

  /** A whole number from 0 to below `end`. */
  below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  of<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.below(items.length)] ?? items[0];
  }

  /** One of them; `otherwise` if there is none. */
  among<Item>(items: readonly Item[], otherwise: Item): Item {
    return items[this.below(items.length)] ?? otherwise;
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.below(256));
  }
}

/** FNV-1a over the name, begun at the seed. */
function mix(seed: number, name: string): number {
  let hash = (seed ^ 0x811c9dc5) | 0;
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash;
}
