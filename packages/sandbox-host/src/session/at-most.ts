import type { Clock } from "@turnbox/core";

/** Waits for the work, but no longer than this. How the work ends is not this function's matter. */
export async function atMost(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  const time = clock.sleep(ms, { signal: over.signal }).catch(() => undefined);
  await Promise.race([work.catch(() => undefined), time]);
  over.abort();
}
