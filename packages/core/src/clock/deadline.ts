import type { Clock } from "./clock.ts";

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
  const controller = new AbortController();
  const over = new AbortController();
  clock.sleep(ms, { signal: over.signal }).then(
    () => {
      controller.abort(new DOMException("the deadline passed", "TimeoutError"));
    },
    () => undefined,
  );
  return {
    // Not by a listener: thousands of them on one signal cost more each.
    signal: signal === undefined ? controller.signal : AbortSignal.any([signal, controller.signal]),
    [Symbol.dispose]: () => {
      over.abort(DISPOSED);
    },
  };
}
