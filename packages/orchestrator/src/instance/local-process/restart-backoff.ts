const DELAYS_MS: readonly number[] = [1000, 2000, 5000, 10_000, 30_000];

/** Up for this long, a host counts as well again and its next failure as the first. */
export const STABLE_AFTER_MS = 60_000;

/** How long to wait before restart number `failures` (the first is 1). */
export function restartDelayMs(failures: number): number {
  return DELAYS_MS[Math.min(Math.max(failures, 1), DELAYS_MS.length) - 1] ?? 0;
}
