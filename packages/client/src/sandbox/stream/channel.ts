/** From one writer, which waits for each value to be taken, to one reader. */
export interface Channel<T> extends AsyncIterable<T> {
  /** Resolves when the value was taken, or thrown away. */
  send(value: T): Promise<void>;
  /** Nothing follows; with an error, the reader gets it. */
  end(failure?: { readonly error: unknown }): void;
  /** Throws away what is sent, unless it is being read. */
  drain(): void;
}

interface Waiting<T> {
  readonly value: T;
  readonly taken: () => void;
}

const DONE = { done: true, value: undefined } as const;

/** `onLeave` is awaited when the reader leaves before the end; from then on everything is thrown away. */
export function createChannel<T>(onLeave: () => Promise<void>): Channel<T> {
  return new HandOver<T>(onLeave);
}

class HandOver<T> implements Channel<T> {
  readonly #onLeave: () => Promise<void>;
  #mode: "held" | "read" | "drained" = "held";
  #ended: { readonly failure: { readonly error: unknown } | undefined } | undefined;
  #full: Waiting<T> | undefined;
  #reader: PromiseWithResolvers<IteratorResult<T, undefined>> | undefined;

  constructor(onLeave: () => Promise<void>) {
    this.#onLeave = onLeave;
  }

  async send(value: T): Promise<void> {
    if (this.#mode === "drained") return;
    if (this.#reader !== undefined) {
      this.#reader.resolve({ done: false, value });
      this.#reader = undefined;
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#full = { value, taken: resolve };
    await promise;
  }

  end(failure?: { readonly error: unknown }): void {
    this.#ended ??= { failure };
    if (this.#reader === undefined) return;
    const waiting = this.#reader;
    this.#reader = undefined;
    this.#ended = { failure: undefined };
    if (failure === undefined) waiting.resolve(DONE);
    else waiting.reject(failure.error);
  }

  drain(): void {
    if (this.#mode === "held") this.#throwAway();
  }

  [Symbol.asyncIterator](): AsyncIterator<T, undefined> {
    if (this.#mode === "held") this.#mode = "read";
    return { next: () => this.#next(), return: () => this.#leave() };
  }

  async #next(): Promise<IteratorResult<T, undefined>> {
    if (this.#full !== undefined) {
      const { value, taken } = this.#full;
      this.#full = undefined;
      taken();
      return { done: false, value };
    }
    if (this.#ended === undefined) {
      this.#reader = Promise.withResolvers();
      return await this.#reader.promise;
    }
    const { failure } = this.#ended;
    this.#ended = { failure: undefined };
    if (failure !== undefined) throw failure.error;
    return DONE;
  }

  async #leave(): Promise<IteratorResult<T, undefined>> {
    this.#throwAway();
    if (this.#ended === undefined) await this.#onLeave();
    return DONE;
  }

  #throwAway(): void {
    this.#mode = "drained";
    this.#full?.taken();
    this.#full = undefined;
  }
}
