import { setAlarm } from "./alarm.ts";
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

/** Aborts with a `TimeoutError` after `ms` of the given clock, as `AbortSignal.timeout` does of the real one. */
export function createDeadline({ clock, ms, signal }: DeadlineOptions): Deadline {
  const linked = linkSignals(signal === undefined ? [] : [signal]);
  const turnOff = setAlarm(clock, ms, () => {
    linked.abort(new DOMException("the deadline passed", "TimeoutError"));
  });
  return {
    signal: linked.signal,
    [Symbol.dispose]: () => {
      linked[Symbol.dispose]();
      turnOff();
    },
  };
}
