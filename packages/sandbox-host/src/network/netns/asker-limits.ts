import type { Clock } from "@turnbox/core";

/** What one sandbox may ask of the resolver: a program has far less under way, and asks far less often. */
export const MAX_IN_FLIGHT = 32;
export const MAX_PER_SECOND = 200;
export const MAX_BURST = 500;

interface Share {
  inFlight: number;
  /** Questions that it may ask at once. */
  tokens: number;
  atMs: number;
}

/** Keeps a sandbox that asks without end from using up the resolver, and the service that it runs in, for the others. */
export class AskerLimits {
  readonly #clock: Clock;
  /** By address; as many as there have been sandboxes with a network under this resolver, at most as many as links. */
  readonly #shares = new Map<string, Share>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether a question of this source may be looked at; costs next to nothing if not. */
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

  /** The question is answered, or given up. */
  end(source: string): void {
    const share = this.#shares.get(source);
    if (share !== undefined) share.inFlight -= 1;
  }
}
