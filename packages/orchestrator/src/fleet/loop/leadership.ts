import { type Clock, createDeadline, type Log, SandboxError } from "@turnbox/core";
import type { Lease, Store } from "../../store/store.ts";

/** The right to act for the fleet. The signal aborts when it is lost: whatever is under way stops then. */
export interface Lead {
  readonly epoch: number;
  readonly signal: AbortSignal;
}

export interface LeadershipOptions {
  readonly store: Store;
  /** Names this process among all that ever ask. */
  readonly holder: string;
  readonly ttlMs: number;
  readonly clock: Clock;
  readonly logger: Log;
}

interface Held {
  readonly lease: Lease;
  readonly over: AbortController;
  readonly lead: Lead;
  readonly renewedAtMs: number;
}

/**
 * Holds the lease of the control loop. It is renewed at a third of its time; if that fails it is given up at two
 * thirds, so that no replica acts on a lease that another may have.
 */
export class Leadership {
  readonly #options: LeadershipOptions;
  #held: Held | undefined;

  constructor(options: LeadershipOptions) {
    this.#options = options;
  }

  get lead(): Lead | undefined {
    return this.#held?.lead;
  }

  /** Takes the lease or renews it if that is due. Undefined while another has it. */
  async hold(call: { readonly signal: AbortSignal }): Promise<Lead | undefined> {
    const { clock, ttlMs } = this.#options;
    const held = this.#held;
    if (held !== undefined && clock.monotonicMs() - held.renewedAtMs < ttlMs / 3) return held.lead;
    try {
      await this.#acquire(call);
    } catch (error) {
      this.#dropIfOld();
      throw error;
    }
    return this.#held?.lead;
  }

  /** Somebody has seen a later lease than ours. */
  lose(): void {
    this.#drop("another orchestrator leads");
  }

  /** Keeps the lease until the signal, then gives it up. */
  async run({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { clock, logger, ttlMs, store } = this.#options;
    const isOver = (): boolean => signal.aborted;
    while (!isOver()) {
      using patience = createDeadline({ clock, ms: ttlMs / 6, signal });
      await this.hold({ signal: patience.signal }).catch((error: unknown) => {
        if (!isOver()) logger.warn({ err: SandboxError.from(error) }, "the lease of the fleet could not be asked for");
      });
      await clock.sleep(ttlMs / 6, { signal }).catch(() => undefined);
    }
    const lease = this.#held?.lease;
    this.#drop("the orchestrator is stopping");
    if (lease !== undefined) {
      using patience = createDeadline({ clock, ms: ttlMs });
      await store.releaseLease(lease, { signal: patience.signal }).catch(() => undefined);
    }
  }

  async #acquire(call: { readonly signal: AbortSignal }): Promise<void> {
    const { store, holder, ttlMs, clock, logger } = this.#options;
    const askedAtMs = clock.monotonicMs();
    const lease = await store.acquireLease({ holder, ttlMs }, call);
    if (lease === undefined) {
      this.#drop("another orchestrator leads");
      return;
    }
    const held = this.#held;
    if (held?.lease.epoch === lease.epoch) {
      this.#held = { ...held, renewedAtMs: askedAtMs };
      return;
    }
    this.#drop("the lease was given anew");
    const over = new AbortController();
    const lead = { epoch: lease.epoch, signal: over.signal };
    this.#held = { lease, over, lead, renewedAtMs: askedAtMs };
    logger.info({ epoch: lease.epoch }, "leads the fleet");
  }

  #dropIfOld(): void {
    const { clock, ttlMs } = this.#options;
    if (this.#held !== undefined && clock.monotonicMs() - this.#held.renewedAtMs >= (ttlMs * 2) / 3) {
      this.#drop("the lease could not be renewed");
    }
  }

  #drop(why: string): void {
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined) return;
    this.#options.logger.info({ epoch: held.lease.epoch, why }, "leads the fleet no longer");
    held.over.abort(new SandboxError("EPOCH_STALE", why));
  }
}
