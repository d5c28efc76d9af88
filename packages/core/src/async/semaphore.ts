/** Leave to go on, until it is disposed of. A second disposal does nothing. */
export type Permit = Disposable;

/**
 * A number of permits, given in the order of asking. One that is given back goes to the first that waits, so no later caller
 * overtakes it.
 */
export class Semaphore {
  #free: number;
  /** In the order of asking. */
  readonly #waiting = new Set<() => void>();

  /** `permits`: a whole number from 1 on. */
  constructor(permits: number) {
    if (!Number.isSafeInteger(permits) || permits < 1) throw new RangeError("a semaphore has at least one permit");
    this.#free = permits;
  }

  /** Permits that are not taken. While callers wait there are none. */
  get free(): number {
    return this.#free;
  }

  /** Callers that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** A permit, or undefined if a caller would have to wait for it. */
  tryAcquire(): Permit | undefined {
    if (this.#free === 0) return undefined;
    this.#free -= 1;
    return this.#createPermit();
  }

  /** Waits for a permit. Rejects with the signal's own reason once that aborts, and takes none then. */
  async acquire(signal?: AbortSignal): Promise<Permit> {
    signal?.throwIfAborted();
    const permit = this.tryAcquire() ?? (await this.#wait(signal));
    // It may have aborted between the grant and now.
    if (signal?.aborted === true) permit[Symbol.dispose]();
    signal?.throwIfAborted();
    return permit;
  }

  /** Does the work under a permit. If the signal aborts before, the work is not begun. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    using _permit = await this.acquire(signal);
    return await work();
  }

  async #wait(signal: AbortSignal | undefined): Promise<Permit> {
    const granted = Promise.withResolvers<void>();
    const onAbort = (): void => {
      // After the grant there is nothing to leave.
      if (this.#waiting.delete(granted.resolve)) granted.reject(signal?.reason as Error);
    };
    this.#waiting.add(granted.resolve);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      await granted.promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
    return this.#createPermit();
  }

  #createPermit(): Permit {
    let state: "taken" | "given back" = "taken";
    return {
      [Symbol.dispose]: () => {
        if (state === "given back") return;
        state = "given back";
        this.#giveBack();
      },
    };
  }

  #giveBack(): void {
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(first);
    first();
  }
}
