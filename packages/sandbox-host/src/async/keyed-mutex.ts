import { untilAborted } from "./until-aborted.ts";

/** Runs work of the same key one at a time, in the order of the calls. Work of different keys runs at the same time. */
export class KeyedMutex {
  readonly #tails = new Map<string, Promise<void>>();

  /** A call whose signal aborts while it waits throws the signal's reason, and its work does not begin. */
  async run<Result>(key: string, work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const done = Promise.withResolvers<void>();
    const tail = before.then(() => done.promise);
    this.#tails.set(key, tail);
    try {
      await (signal === undefined ? before : untilAborted(before, signal));
      return await work();
    } finally {
      done.resolve();
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    }
  }
}
