import { createRandom } from "../support/random.ts";

/** Everything random in a run comes from here, and so from its seed. */
export class Chance {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = createRandom(seed);
    // Neighbouring seeds begin alike; their first numbers are thrown away.
    for (let warmUp = 0; warmUp < 8; warmUp += 1) this.#random();
  }

  /** From 0 to 1. */
  next(): number {
    return this.#random();
  }

  happens(probability: number): boolean {
    return this.#random() < probability;
  }

  between(low: number, high: number): number {
    return low + this.#random() * (high - low);
  }

  /** A whole number, both ends included. */
  whole(low: number, high: number): number {
    return low + Math.floor(this.#random() * (high - low + 1));
  }

  /** Waiting times of what comes at random, `meanMs` apart on average. */
  exponential(meanMs: number): number {
    return -Math.log(1 - this.#random()) * meanMs;
  }

  pick<Item>(items: readonly Item[]): Item | undefined {
    return items[Math.floor(this.#random() * items.length)];
  }
}
