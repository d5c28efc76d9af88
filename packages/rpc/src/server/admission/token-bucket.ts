import { type Clock, LruMap } from "@turnbox/core";

export interface RateLimit {
  readonly perSecond: number;
  /** How many may come at once after a quiet time. */
  readonly burst: number;
}

/** Rates of many callers. */
export interface RateLimiter {
  /** Takes one from the caller's allowance: 0 where there was one, else how long to wait for the next. */
  take(caller: string): number;
  /** Undoes a take. */
  giveBack(caller: string): void;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

/** How many callers are remembered; the one that was quiet longest is forgotten first, which only fills its bucket. */
const MAX_CALLERS = 10_000;

export function createRateLimiter(limit: RateLimit, clock: Clock): RateLimiter {
  const buckets = new LruMap<string, Bucket>(MAX_CALLERS);
  return {
    take: (caller) => {
      const nowMs = clock.monotonicMs();
      const bucket = buckets.get(caller) ?? { tokens: limit.burst, atMs: nowMs };
      bucket.tokens = Math.min(limit.burst, bucket.tokens + ((nowMs - bucket.atMs) / 1000) * limit.perSecond);
      bucket.atMs = nowMs;
      buckets.set(caller, bucket);
      if (bucket.tokens >= 1) {
        bucket.tokens -= 1;
        return 0;
      }
      return Math.ceil(((1 - bucket.tokens) / limit.perSecond) * 1000);
    },
    giveBack: (caller) => {
      const bucket = buckets.get(caller);
      if (bucket !== undefined) bucket.tokens = Math.min(limit.burst, bucket.tokens + 1);
    },
  };
}
