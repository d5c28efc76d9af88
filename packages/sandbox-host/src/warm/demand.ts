import type { Clock } from "@turnbox/core";
import type { BaseRef } from "../storage/storage.ts";

/** Templates beyond these, the longest unused first, have no warm sessions. */
const MAX_TEMPLATES = 4;
/** Longest wait between two looks at whether there is still room for the pool. */
const LOOK_MS = 10_000;

/** The templates that creates ask for, and how long the pool waits after a create before it makes another session. */
export class Demand {
  readonly #clock: Clock;
  /** In the order of their last use. */
  readonly #bases = new Map<string, BaseRef>();
  /** No session is made before this time, because of a create. Creates that follow do not put it off further. */
  #notBeforeMs = 0;
  #wake = (): void => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records a use of the template, and wakes `untilChanged`. */
  add(base: BaseRef, delayMs: number): void {
    this.#bases.delete(keyOf(base));
    this.#bases.set(keyOf(base), base);
    const [oldest] = this.#bases.keys();
    if (this.#bases.size > MAX_TEMPLATES && oldest !== undefined) this.#bases.delete(oldest);
    const nowMs = this.#clock.monotonicMs();
    if (this.#notBeforeMs <= nowMs) this.#notBeforeMs = nowMs + delayMs;
    this.#wake();
  }

  remove(base: BaseRef): void {
    this.#bases.delete(keyOf(base));
  }

  has(base: BaseRef): boolean {
    return this.#bases.has(keyOf(base));
  }

  /** The one used last comes first. */
  latestFirst(): readonly BaseRef[] {
    return [...this.#bases.values()].reverse();
  }

  /** What is left of the wait after a create, at most one look. 0 or less if there is none. */
  waitMs(): number {
    return Math.min(this.#notBeforeMs - this.#clock.monotonicMs(), LOOK_MS);
  }

  /** Returns at the next `add`, after `LOOK_MS`, or when the signal aborts. */
  async untilChanged(signal: AbortSignal): Promise<void> {
    const woken = Promise.withResolvers<void>();
    this.#wake = woken.resolve;
    await Promise.race([woken.promise, this.#clock.sleep(LOOK_MS, { signal }).catch(() => undefined)]);
  }
}

export const keyOf = ({ name, digest }: BaseRef): string => `${name}@${digest}`;
