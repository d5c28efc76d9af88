import type { Clock } from "./clock.ts";

export interface RunEveryOptions {
  readonly clock: Clock;
  /** The pause from the end of a round to the next. */
  readonly intervalMs: number;
  /** When the first round begins. Default `at_once`. */
  readonly firstRound?: "at_once" | "after_interval";
  /** Ends the loop. */
  readonly signal: AbortSignal;
  /** A round that failed while the loop was to go on; the next one follows. It must not throw. */
  readonly onFailure: (failure: unknown) => void;
}

/**
 * Does the work again and again, with an interval between two rounds, until the signal aborts. Resolves then, after the round that is
 * under way.
 */
export async function runEvery(
  work: (call: { readonly signal: AbortSignal }) => Promise<unknown>,
  { clock, intervalMs, firstRound = "at_once", signal, onFailure }: RunEveryOptions,
): Promise<void> {
  const isOver = (): boolean => signal.aborted;
  const pause = async (): Promise<void> => {
    await clock.sleep(intervalMs, { signal }).catch(() => undefined);
  };
  if (firstRound === "after_interval") await pause();
  while (!isOver()) {
    try {
      await work({ signal });
    } catch (failure) {
      if (!isOver()) onFailure(failure);
    }
    await pause();
  }
}
