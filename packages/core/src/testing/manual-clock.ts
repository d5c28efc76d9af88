import type { Clock } from "../async/clock.ts";

/** A clock that stands still until a test moves it. */
export interface ManualClock extends Clock {
  /** How many sleeps wait for time to pass. */
  readonly sleeping: number;
  /**
   * Lets `ms` pass: wakes each sleeper at its own time, in order, and lets what it does next run (including new sleeps
   * that end within the span) before time goes on.
   */
  advance(ms: number): Promise<void>;
  /** Moves wall time alone, as an administrator or a time server does; sleeps and monotonic time do not notice. */
  stepWallTime(ms: number): void;
}

interface Sleeper {
  readonly dueMs: number;
  readonly wake: () => void;
}

export function createManualClock(options: { readonly nowMs?: number } = {}): ManualClock {
  let monotonicMs = 0;
  let wallOffsetMs = options.nowMs ?? Date.UTC(2030, 0, 1);
  const sleepers = new Set<Sleeper>();

  const nextSleeper = (untilMs: number): Sleeper | undefined => {
    let next: Sleeper | undefined;
    for (const sleeper of sleepers) {
      if (sleeper.dueMs <= untilMs && (next === undefined || sleeper.dueMs < next.dueMs)) next = sleeper;
    }
    return next;
  };

  const sleep = async (ms: number, { signal }: { readonly signal?: AbortSignal } = {}): Promise<void> => {
    signal?.throwIfAborted();
    if (ms <= 0) return;
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        sleepers.delete(sleeper);
        reject(signal?.reason as Error);
      };
      const sleeper: Sleeper = {
        dueMs: monotonicMs + ms,
        wake: () => {
          sleepers.delete(sleeper);
          signal?.removeEventListener("abort", onAbort);
          resolve();
        },
      };
      sleepers.add(sleeper);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  };

  const advance = async (ms: number): Promise<void> => {
    const untilMs = monotonicMs + ms;
    await settle();
    for (let next = nextSleeper(untilMs); next !== undefined; next = nextSleeper(untilMs)) {
      monotonicMs = Math.max(monotonicMs, next.dueMs);
      next.wake();
      await settle();
    }
    monotonicMs = untilMs;
  };

  return {
    nowMs: () => wallOffsetMs + monotonicMs,
    monotonicMs: () => monotonicMs,
    sleep,
    advance,
    stepWallTime: (ms) => {
      wallOffsetMs += ms;
    },
    get sleeping() {
      return sleepers.size;
    },
  };
}

/** Lets promise callbacks that are already due run to their end. */
async function settle(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}
