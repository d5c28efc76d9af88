/** The seed of all chance in tests; another one by TURNBOX_SEED. */
export const SEED = Number(process.env["TURNBOX_SEED"] ?? 20261116);

/** Whether the whole form of a test is wanted; the short one runs in `npm test`. */
export const IS_FULL = process.env["TURNBOX_FULL"] === "1";

/** How much longer than it should take something may take in the short form, which shares its machine. */
export const SLACK = IS_FULL ? 1 : 5;

/** mulberry32: the same seed, the same numbers from 0 to 1. */
export function createRandom(seed: number = SEED): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One of them; undefined where there is none. */
export function pick<Item>(random: () => number, items: readonly Item[]): Item | undefined {
  return items[Math.floor(random() * items.length)];
}

/** The same items in another order. */
export function shuffled<Item>(random: () => number, items: readonly Item[]): readonly Item[] {
  return items
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
