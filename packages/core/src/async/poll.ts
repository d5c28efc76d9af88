import type { Clock } from "./clock.ts";
import type { Backoff } from "./retry.ts";

export interface PollOptions {
  readonly clock: Clock;
  /** The pause between two looks, or how it grows with their number. */
  readonly everyMs: number | Backoff;
  /** How long to look. Default: until the signal aborts. */
  readonly atMostMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Looks until it sees something: returns the first result that is not undefined, or undefined when the time has passed. It looks at
 * once, and a last time at the end. Rejects with what a look throws, and with the signal's own reason.
 */
export async function poll<T>(
  look: (looks: number) => T | undefined | Promise<T | undefined>,
  { clock, everyMs, atMostMs = Number.POSITIVE_INFINITY, signal }: PollOptions,
): Promise<T | undefined> {
  const endMs = clock.monotonicMs() + atMostMs;
  for (let looks = 1; ; looks += 1) {
    signal?.throwIfAborted();
    const leftMs = endMs - clock.monotonicMs();
    const seen = await look(looks);
    if (seen !== undefined || leftMs <= 0) return seen;
    const pauseMs = typeof everyMs === "number" ? everyMs : everyMs(looks);
    await clock.sleep(Math.max(0, Math.min(pauseMs, endMs - clock.monotonicMs())), signal && { signal });
  }
}
