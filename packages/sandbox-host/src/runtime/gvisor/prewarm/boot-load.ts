import type { Clock } from "@turnbox/core";

/** How many boots a caller waits for now. What is only made ready for later gives way to them. */
export interface BootLoad {
  run<Result>(boot: () => Promise<Result>): Promise<Result>;
  /**
   * Settles when none is under way, and after many at once also when what they were for has had its time. At the latest
   * after a few seconds: under lasting load something is to be ready too.
   */
  calm(call?: { readonly signal?: AbortSignal }): Promise<void>;
}

/** So many at once fill the machine. */
const CROWD = 3;
/** The commands that a crowd of containers was booted for are done by then. */
const AFTER_CROWD_MS = 500;
const MAX_WAIT_MS = 5000;
const POLL_MS = 100;

export function createBootLoad(clock: Clock): BootLoad {
  let underWay = 0;
  let crowdedUntilMs = Number.NEGATIVE_INFINITY;
  const noteCrowd = (): void => {
    const nowMs = clock.monotonicMs();
    if (underWay >= CROWD || nowMs < crowdedUntilMs) crowdedUntilMs = nowMs + AFTER_CROWD_MS;
  };
  const isCalm = (): boolean => underWay === 0 && clock.monotonicMs() >= crowdedUntilMs;
  return {
    run: async (boot) => {
      underWay += 1;
      noteCrowd();
      try {
        return await boot();
      } finally {
        noteCrowd();
        underWay -= 1;
      }
    },
    calm: async ({ signal } = {}) => {
      const untilMs = clock.monotonicMs() + MAX_WAIT_MS;
      while (!isCalm() && clock.monotonicMs() < untilMs) await clock.sleep(POLL_MS, signal && { signal });
    },
  };
}
