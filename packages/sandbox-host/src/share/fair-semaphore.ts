import { SandboxError } from "@turnbox/core";
import { FairQueue } from "./fair-queue.ts";
import { Shares } from "./shares.ts";

interface Waiter {
  readonly go: () => void;
}

/** Permits that keys take, wait for and give back, by the rules of `Shares` and `FairQueue`. */
export class FairSemaphore {
  readonly #permits: Shares;
  readonly #all: Shares;
  readonly #queue = new FairQueue<Waiter>();

  /** `maxWaiting` bounds those that wait, with the same shares. */
  constructor(size: { readonly count: number; readonly maxWaiting: number }) {
    this.#permits = new Shares(size.count);
    this.#all = new Shares(size.count + size.maxWaiting);
  }

  /** Waits for a permit until the signal aborts; returns the function that gives it back. `OVERLOADED` if too many of the key's wait. */
  async acquire(key: string, signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw SandboxError.from(signal.reason);
    const leaveAll = this.#all.enter(key);
    if (leaveAll === undefined)
      throw new SandboxError("OVERLOADED", "too many calls of the session wait for their turn");
    try {
      if (this.#queue.size === 0 && this.#permits.hasRoom(key)) this.#permits.take(key);
      else await this.#wait(key, signal);
    } catch (thrown) {
      leaveAll();
      throw thrown;
    }
    let state: "taken" | "left" = "taken";
    return () => {
      if (state === "left") return;
      state = "left";
      this.#permits.leave(key);
      leaveAll();
      this.#letIn();
    };
  }

  async #wait(key: string, signal: AbortSignal): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const waiter = { go: turn.resolve };
    const onAbort = (): void => {
      this.#queue.remove(key, waiter);
      turn.reject(SandboxError.from(signal.reason));
    };
    this.#queue.push(key, waiter);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#letIn();
    try {
      await turn.promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #letIn(): void {
    for (let key = this.#queue.nextKey(this.#permits); key !== undefined; key = this.#queue.nextKey(this.#permits)) {
      this.#permits.take(key);
      this.#queue.shift(key)?.go();
    }
  }
}
