import type { Clock } from "@turnbox/core";

/** The limits of one sandbox at the resolver, which ordinary programs are far below. */
export const MAX_IN_FLIGHT = 32;
export const MAX_PER_SECOND = 200;
export const MAX_BURST = 500;

interface Share {
  inFlight: number;
  /** Questions that are allowed at this moment. */
  tokens: number;
  atMs: number;
}

/** Limits the questions of each sandbox, so that one alone cannot exhaust the resolver and the service that it runs in. */
export class AskerLimits {
  readonly #clock: Clock;
  /** By address; bounded by the number of links of the host. */
  readonly #shares = new Map<string, Share>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether a question of this source may be answered. A refusal costs almost nothing. */
  begin(source: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    const share = this.#shares.get(source) ?? { inFlight: 0, tokens: MAX_BURST, atMs: nowMs };
    this.#shares.set(source, share);
    share.tokens = Math.min(MAX_BURST, share.tokens + ((nowMs - share.atMs) * MAX_PER_SECOND) / 1000);
    share.atMs = nowMs;
    if (share.tokens < 1 || share.inFlight >= MAX_IN_FLIGHT) return false;
    share.tokens -= 1;
    share.inFlight += 1;
    return true;
  }

  /** Ends a question that `begin` allowed. */
  end(source: string): void {
    const share = this.#shares.get(source);
    if (share !== undefined) share.inFlight -= 1;
  }
}
