const FIRST_MS = 1000;
const MOST_MS = 20_000;

/** How long to wait after failure number `failures` (the first is 1): twice as long each time, spread over the upper half. */
export function backoffMs(failures: number, random: () => number): number {
  const wholeMs = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10));
  return wholeMs * (0.5 + random() / 2);
}
