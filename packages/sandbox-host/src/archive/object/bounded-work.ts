import { type Call, type LinkedSignal, linkSignals, Semaphore } from "@turnbox/core";

/**
 * Work in the background, a bounded number at a time. The first failure ends all of it, and is what `start` and `finish` fail
 * with from then on.
 */
export class BoundedWork implements Disposable {
  readonly #permits: Semaphore;
  readonly #running = new Set<Promise<void>>();
  readonly #link: LinkedSignal;

  constructor(limit: number, call: Call) {
    this.#permits = new Semaphore(limit);
    this.#link = linkSignals([call.signal]);
  }

  /** Aborts with the first failure, with `cancel`, and with the caller's own. */
  get signal(): AbortSignal {
    return this.#link.signal;
  }

  /** Returns when the work has begun. `prepare` is done under the permit and is waited for. */
  async start(prepare: () => Promise<(call: Call) => Promise<void>>): Promise<void> {
    const permit = await this.#permits.acquire(this.signal);
    let run: Promise<void> | undefined;
    try {
      const work = await prepare();
      this.signal.throwIfAborted();
      run = work({ signal: this.signal })
        .catch((failure: unknown) => this.#link.abort(failure))
        .finally(() => {
          permit[Symbol.dispose]();
        });
    } finally {
      if (run === undefined) permit[Symbol.dispose]();
    }
    this.#track(run);
  }

  /** Waits for all work. */
  async finish(): Promise<void> {
    await Promise.all(this.#running);
    this.signal.throwIfAborted();
  }

  /** Ends all work and waits until it has ended. */
  async cancel(failure: unknown): Promise<void> {
    this.#link.abort(failure);
    await Promise.all(this.#running);
  }

  [Symbol.dispose](): void {
    this.#link[Symbol.dispose]();
  }

  #track(run: Promise<void>): void {
    this.#running.add(run);
    run.then(
      () => this.#running.delete(run),
      () => this.#running.delete(run),
    );
  }
}
