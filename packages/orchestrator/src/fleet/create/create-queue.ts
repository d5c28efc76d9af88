import { type Clock, createDeadline, type Log, SandboxError } from "@turnbox/core";
import type { Store } from "../../store/store.ts";

export interface CreateQueueOptions {
  readonly store: Store;
  /** Names this replica. */
  readonly holder: string;
  readonly maxWaiting: number;
  /** Why there is no use in waiting, given the time that the caller has; undefined if room may come. */
  readonly whyNotWait: (leftMs: number) => string | undefined;
  /** After what time it is worth to ask again. */
  readonly retryAfterMs: number;
  readonly clock: Clock;
  readonly logger: Log;
  /** Called when creates wait for room, so that the control loop makes some. */
  readonly onDemand: () => void;
}

export interface Waiter<T> {
  /** Takes a place if there is one; it runs in the order in which creates came. */
  readonly take: () => T | undefined;
  /** How long it may wait. */
  readonly leftMs: number;
  /** Why there is no room, for people. */
  readonly message: string;
  /** Whether a place is known to come, so that waiting is of use. */
  readonly isExpected?: boolean;
}

interface Waiting {
  readonly serve: () => boolean;
}

/** How long the demand of a replica counts after it was last heard of. */
const DEMAND_TTL_MS = 15_000;
/** After so many that found no place, those behind them wait for the next change. */
const MISSES_AT_ONCE = 32;

/**
 * Creates that found no room. Each is tried again when something has changed, first come first served; none holds a place
 * while it waits. It is bounded, and refuses at once if waiting is of no use.
 */
export class CreateQueue {
  readonly #options: CreateQueueOptions;
  readonly #waiting = new Set<Waiting>();
  #announcing: Promise<void> | undefined;
  #announceAgain = (): void => undefined;
  #isPumping = false;
  #isPumpDue = false;

  constructor(options: CreateQueueOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Waits for a place. Leaves the queue when the signal aborts. */
  async wait<T>(waiter: Waiter<T>, { signal }: { readonly signal: AbortSignal }): Promise<T> {
    signal.throwIfAborted();
    const { maxWaiting, clock } = this.#options;
    const why = this.#waiting.size >= maxWaiting ? "too many creates wait" : this.#whyNot(waiter);
    if (why !== undefined) throw this.exhausted(`${waiter.message}; ${why}`);
    const over = new AbortController();
    const served = Promise.withResolvers<T>();
    let taken: T | undefined;
    const entry: Waiting = {
      serve: () => {
        if (signal.aborted) return false;
        taken = waiter.take();
        if (taken === undefined) return false;
        served.resolve(taken);
        return true;
      },
    };
    const tooLate = clock.sleep(waiter.leftMs, { signal: AbortSignal.any([signal, over.signal]) }).then(() => {
      throw this.exhausted(`${waiter.message}; no room came in time`);
    });
    this.#waiting.add(entry);
    try {
      this.#announce();
      this.pump();
      return await Promise.race([served.promise, tooLate]);
    } catch (error) {
      // A place that came at the last moment is taken, not lost.
      if (taken !== undefined) return taken;
      throw error;
    } finally {
      this.#waiting.delete(entry);
      tooLate.catch(() => undefined);
      over.abort();
      this.#announce();
    }
  }

  #whyNot({ isExpected = false, leftMs }: Pick<Waiter<unknown>, "isExpected" | "leftMs">): string | undefined {
    return isExpected ? undefined : this.#options.whyNotWait(leftMs);
  }

  /** There is no room, and none will come in time. */
  exhausted(message: string, cause?: SandboxError): SandboxError {
    const retryAfterMs = cause?.retryAfterMs ?? this.#options.retryAfterMs;
    return new SandboxError("FLEET_EXHAUSTED", message, { retryAfterMs, ...(cause === undefined ? {} : { cause }) });
  }

  /** Something has changed: each that waits is tried again, in order. */
  pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    let misses = 0;
    for (const entry of this.#waiting) {
      if (entry.serve()) this.#waiting.delete(entry);
      else misses += 1;
      if (misses === MISSES_AT_ONCE) break;
    }
    this.#isPumping = false;
  }

  /** `pump` when what goes on at this moment is through, once for many changes. */
  pumpSoon(): void {
    if (this.#isPumpDue || this.#waiting.size === 0) return;
    this.#isPumpDue = true;
    queueMicrotask(() => {
      this.#isPumpDue = false;
      this.pump();
    });
  }

  /** Serves whom it can, and answers when the store knows who still waits. */
  async flush(call: { readonly signal: AbortSignal }): Promise<void> {
    this.pump();
    if (this.#announcing === undefined) return;
    const { store, holder } = this.#options;
    await store.putDemand({ holder, waitingCreates: this.#waiting.size, ttlMs: DEMAND_TTL_MS }, call);
  }

  /** Returns when the store knows what waits. */
  async idle(): Promise<void> {
    await this.#announcing;
  }

  #announce(): void {
    this.#announceAgain();
    this.#announcing ??= this.#keepAnnouncing().finally(() => {
      this.#announcing = undefined;
    });
  }

  /** Puts on record how many wait, at each change and before the last record runs out, until none does. */
  async #keepAnnouncing(): Promise<void> {
    const { store, holder, clock, logger, onDemand } = this.#options;
    for (;;) {
      const changed = new AbortController();
      this.#announceAgain = () => {
        changed.abort();
      };
      const waitingCreates = this.#waiting.size;
      const demand = { holder, waitingCreates, ttlMs: DEMAND_TTL_MS };
      using patience = createDeadline({ clock, ms: DEMAND_TTL_MS });
      await store.putDemand(demand, { signal: patience.signal }).catch((error: unknown) => {
        logger.warn({ err: SandboxError.from(error) }, "the demand could not be put on record");
      });
      if (waitingCreates > 0) onDemand();
      if (waitingCreates === 0 && this.waiting === 0) return;
      await clock.sleep(DEMAND_TTL_MS / 3, { signal: changed.signal }).catch(() => undefined);
    }
  }
}
