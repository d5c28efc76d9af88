import type { Clock } from "@turnbox/core";

export interface ProgressWatchOptions {
  readonly clock: Clock;
  /** The longest time without progress; it may be twice as long until it shows. */
  readonly patienceMs: number;
  /** Called once. */
  readonly onStall: () => void;
}

/** Watches over work that may take any time, as long as it goes on. Its owner disposes of it when the work is over. */
export class ProgressWatch implements Disposable {
  readonly #options: ProgressWatchOptions;
  readonly #over = new AbortController();
  #steps = 0;

  constructor(options: ProgressWatchOptions) {
    this.#options = options;
    this.#watch().catch(() => undefined);
  }

  note(): void {
    this.#steps += 1;
  }

  [Symbol.dispose](): void {
    this.#over.abort();
  }

  async #watch(): Promise<void> {
    const { clock, patienceMs, onStall } = this.#options;
    for (let seen = -1; seen !== this.#steps; ) {
      seen = this.#steps;
      await clock.sleep(patienceMs, { signal: this.#over.signal });
    }
    onStall();
  }
}
