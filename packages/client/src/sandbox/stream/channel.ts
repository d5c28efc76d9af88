/** From one writer, who waits for each value to be taken, to one reader. */
export interface Channel<T> extends AsyncIterable<T> {
  /** Resolves when the value was taken, or thrown away. */
  send(value: T): Promise<void>;
  /** Nothing follows; with an error, the reader gets it. */
  end(failure?: { readonly error: unknown }): void;
  /** Throws away whatever comes, unless somebody reads. */
  drain(): void;
}

interface Waiting<T> {
  readonly value: T;
  readonly taken: () => void;
}

/** `onLeave` is awaited when the reader leaves before the end; from then on everything is thrown away. */
export function createChannel<T>(onLeave: () => Promise<void>): Channel<T> {
  let mode: "held" | "read" | "drained" = "held";
  let ended: { readonly failure: { readonly error: unknown } | undefined } | undefined;
  let full: Waiting<T> | undefined;
  let reader: PromiseWithResolvers<IteratorResult<T, undefined>> | undefined;

  const done = { done: true, value: undefined } as const;
  const throwAway = (): void => {
    mode = "drained";
    full?.taken();
    full = undefined;
  };
  const next = async (): Promise<IteratorResult<T, undefined>> => {
    if (full !== undefined) {
      const { value, taken } = full;
      full = undefined;
      taken();
      return { done: false, value };
    }
    if (ended === undefined) {
      reader = Promise.withResolvers();
      return await reader.promise;
    }
    const { failure } = ended;
    ended = { failure: undefined };
    if (failure !== undefined) throw failure.error;
    return done;
  };

  return {
    send: async (value) => {
      if (mode === "drained") return;
      if (reader !== undefined) {
        reader.resolve({ done: false, value });
        reader = undefined;
        return;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      full = { value, taken: resolve };
      await promise;
    },
    end: (failure) => {
      ended ??= { failure };
      if (reader === undefined) return;
      const waiting = reader;
      reader = undefined;
      ended = { failure: undefined };
      if (failure === undefined) waiting.resolve(done);
      else waiting.reject(failure.error);
    },
    drain: () => {
      if (mode === "held") throwAway();
    },
    [Symbol.asyncIterator]: () => {
      if (mode === "held") mode = "read";
      return {
        next,
        return: async () => {
          throwAway();
          if (ended === undefined) await onLeave();
          return done;
        },
      };
    },
  };
}
