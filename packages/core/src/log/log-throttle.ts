import type { Clock } from "../async/clock.ts";

/** Bounds how often something that callers can provoke reaches the log. */
export interface LogThrottle {
  /** Says whether to log now, and how many were left out since the last one that was. */
  admit(): { readonly suppressed: number } | undefined;
}

export function createLogThrottle(options: { readonly clock: Clock; readonly maxPerSecond: number }): LogThrottle {
  const { clock, maxPerSecond } = options;
  let windowStartMs = Number.NEGATIVE_INFINITY;
  let admitted = 0;
  let suppressed = 0;
  return {
    admit: () => {
      if (clock.monotonicMs() - windowStartMs >= 1000) {
        windowStartMs = clock.monotonicMs();
        admitted = 0;
      }
      if (admitted >= maxPerSecond) {
        suppressed += 1;
        return undefined;
      }
      admitted += 1;
      const answer = { suppressed };
      suppressed = 0;
      return answer;
    },
  };
}
