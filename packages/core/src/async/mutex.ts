import { Semaphore } from "./semaphore.ts";

/** Runs work one after the other, in the order of asking. A failure is the caller's own and does not hold up what comes next. */
export class Mutex {
  readonly #semaphore = new Semaphore(1);

  /** Whether work runs now. */
  get isBusy(): boolean {
    return this.#semaphore.free === 0;
  }

  /** Rejects with the signal's own reason if that aborts before the work's turn; the work is not begun then. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    return await this.#semaphore.run(work, signal);
  }

  /** Resolves when all that was asked for before has ended. */
  async idle(): Promise<void> {
    await this.run(async () => undefined);
  }
}
