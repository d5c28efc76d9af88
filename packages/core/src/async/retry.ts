import type { Clock } from "./clock.ts";

/** How long to wait after a number of failures in a row; the first is 1. */
export type Backoff = (failures: number) => number;

export interface ExponentialOptions {
  /** The pause after the first failure. */
  readonly firstMs: number;
  /** The longest pause. */
  readonly longestMs: number;
  /** By how much each pause is longer than the one before. Default 2, at least 1. */
  readonly factor?: number;
  /** The share of each pause that chance decides, from 0 to 1. Default 0. */
  readonly jitter?: number;
  /** Chance: from 0 up to 1. Required with `jitter`. */
  readonly random?: () => number;
}

/** Pauses that grow by a factor up to the longest one. */
export function exponential({ firstMs, longestMs, factor = 2, jitter = 0, random }: ExponentialOptions): Backoff {
  if (jitter > 0 && random === undefined) throw new RangeError("jitter needs a source of chance");
  return (failures) => {
    const wholeMs = Math.min(longestMs, firstMs * factor ** Math.max(0, failures - 1));
    return wholeMs * (1 - jitter + jitter * (random?.() ?? 0));
  };
}

/** The pauses of a list, one after the other, then the last one each time. */
export function steps(pausesMs: readonly [number, ...number[]]): Backoff {
  return (failures) => pausesMs[Math.min(Math.max(failures, 1), pausesMs.length) - 1] ?? pausesMs[0];
}

/** When a failed attempt is followed by another one. */
export interface RetryPolicy {
  readonly pauseMs: Backoff;
  /** How many attempts in all. Default: no bound. */
  readonly attempts?: number;
  /** How long after the first attempt another one may begin. Default: no bound. */
  readonly patienceMs?: number;
}

export interface RetryOptions extends RetryPolicy {
  readonly clock: Clock;
  readonly signal?: AbortSignal;
  /** Whether a failure may pass; a number says after how long, in the place of the policy's pause. Default: each may. */
  readonly passes?: (failure: unknown) => boolean | number;
  /** Called before each pause. */
  readonly onRetry?: (failure: unknown, failures: number) => void;
}

/**
 * Tries until an attempt succeeds. Throws the last failure if it does not pass or the policy allows no further attempt, and the
 * signal's own reason if that aborts during a pause. An attempt under way is its own to end.
 */
export async function retry<T>(attempt: (failures: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { clock, signal, passes = () => true, onRetry } = options;
  const startedMs = clock.monotonicMs();
  for (let failures = 0; ; ) {
    try {
      return await attempt(failures);
    } catch (failure) {
      failures += 1;
      const pauseMs = pauseAfter(failures, passes(failure), options);
      if (pauseMs === undefined || !hasTime(options, clock.monotonicMs() - startedMs + pauseMs)) throw failure;
      onRetry?.(failure, failures);
      await clock.sleep(pauseMs, signal && { signal });
    }
  }
}

/** Undefined if there is no further attempt. */
function pauseAfter(failures: number, verdict: boolean | number, policy: RetryPolicy): number | undefined {
  if (verdict === false || failures >= (policy.attempts ?? Number.POSITIVE_INFINITY)) return undefined;
  return verdict === true ? policy.pauseMs(failures) : verdict;
}

const hasTime = ({ patienceMs = Number.POSITIVE_INFINITY }: RetryPolicy, atMs: number): boolean => atMs <= patienceMs;
