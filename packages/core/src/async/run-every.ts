import type { Clock } from "./clock.ts";

export interface RunEveryOptions {
  readonly clock: Clock;
  /** The pause from the end of a round to the next. */
  readonly intervalMs: number;
  /** Ends the loop. */
  readonly signal: AbortSignal;
  /** A round that failed while the loop was to go on; the next one follows. It must not throw. */
  readonly onFailure: (failure: unknown) => void;
}

/**
 * Does the work at once and again after each interval, one round at a time, until the signal aborts. Resolves then, after the round
 * that is under way.
 */
export async function runEvery(
  work: (call: { readonly signal: AbortSignal }) => Promise<unknown>,
  { clock, intervalMs, signal, onFailure }: RunEveryOptions,
): Promise<void> {
  const isOver = (): boolean => signal.aborted;
  while (!isOver()) {
    try {
      await work({ signal });
    } catch (failure) {
      if (!isOver()) onFailure(failure);
    }
    await clock.sleep(intervalMs, { signal }).catch(() => undefined);
  }
}
