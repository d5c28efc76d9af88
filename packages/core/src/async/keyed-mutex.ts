import { Mutex } from "./mutex.ts";

interface Entry {
  readonly mutex: Mutex;
  /** Calls that run or wait. */
  users: number;
}

/** Runs work on one key one after the other, in the order of asking; work on other keys does not wait for it. */
export class KeyedMutex<Key = string> {
  readonly #entries = new Map<Key, Entry>();

  /** Keys on which work runs or waits. A key is forgotten with its last work. */
  get size(): number {
    return this.#entries.size;
  }

  /** Rejects with the signal's own reason if that aborts before the work's turn; the work is not begun then. */
  async run<T>(key: Key, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const entry = this.#entries.get(key) ?? { mutex: new Mutex(), users: 0 };
    this.#entries.set(key, entry);
    entry.users += 1;
    try {
      return await entry.mutex.run(work, signal);
    } finally {
      entry.users -= 1;
      if (entry.users === 0) this.#entries.delete(key);
    }
  }

  /** Resolves when all that was asked for before has ended, well or not. */
  async idle(): Promise<void> {
    await Promise.all([...this.#entries.values()].map(({ mutex }) => mutex.idle()));
  }
}
