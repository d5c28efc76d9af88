/** Work for one key runs one after another; work for different keys side by side. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const mine = before.then(work);
    const done = mine.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(key, done);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === done) this.#last.delete(key);
    }
  }

  /** Answers when all work that was begun has ended, well or not. */
  async settled(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}
