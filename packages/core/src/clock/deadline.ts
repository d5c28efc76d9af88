import type { Clock } from "./clock.ts";
import { linkSignals } from "./linked-signal.ts";

/** A signal that ends by itself. Its owner disposes of it when the work is over, which gives the timer back. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
}

export interface DeadlineOptions {
  readonly clock: Clock;
  readonly ms: number;
  /** Ends the deadline's own signal early, with the same reason. */
  readonly signal?: AbortSignal;
}

/** Nobody sees it: a reason of its own would be made, with its stack, each time. */
const DISPOSED = new Error("the deadline is no longer needed");

/** Aborts with a `TimeoutError` after `ms` of the given clock, as `AbortSignal.timeout` does of the real one. */
export function createDeadline({ clock, ms, signal }: DeadlineOptions): Deadline {
  const linked = linkSignals(signal === undefined ? [] : [signal]);
  const over = new AbortController();
  clock.sleep(ms, { signal: over.signal }).then(
    () => {
      linked.abort(new DOMException("the deadline passed", "TimeoutError"));
    },
    () => undefined,
  );
  return {
    signal: linked.signal,
    [Symbol.dispose]: () => {
      linked[Symbol.dispose]();
      over.abort(DISPOSED);
    },
  };
}
