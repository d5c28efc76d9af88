const DELAYS_MS: readonly number[] = [1000, 2000, 5000, 10_000, 30_000];

/** How long to wait after the failed start number `failures` in a row (the first is 1). */
export function restartDelayMs(failures: number): number {
  return DELAYS_MS[Math.min(Math.max(failures, 1), DELAYS_MS.length) - 1] ?? 0;
}
