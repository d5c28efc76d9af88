import { SandboxError } from "@turnbox/core";

/** A number of permits that callers take and give back. Callers that wait are served in the order of their calls. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(permits: number) {
    this.#free = permits;
  }

  /**
   * Waits for a permit and returns the function that gives it back, which does nothing the second time. A call whose signal
   * aborts while it waits throws the signal's reason.
   */
  async acquire(signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw SandboxError.from(signal.reason);
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(signal);
    let state: "held" | "released" = "held";
    return () => {
      if (state === "released") return;
      state = "released";
      this.#release();
    };
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const onAbort = (): void => {
      this.#waiting.delete(turn.resolve);
      turn.reject(SandboxError.from(signal.reason));
    };
    this.#waiting.add(turn.resolve);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await turn.promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
