/** One of several readers of the same source. */
export interface BroadcastReader<T> extends AsyncIterable<T> {
  /** Is no longer waited for; one that was never read must leave too. */
  leave(): Promise<void>;
}

/**
 * One stream of bytes for several readers, which are all as fast as the slowest. At most one chunk is held. A reader
 * that stops early is no longer waited for; the source ends with its last reader.
 */
export function broadcast<T>(source: AsyncIterable<T>, readers: number): readonly BroadcastReader<T>[] {
  const iterator = source[Symbol.asyncIterator]();
  const active = new Set<number>(Array.from({ length: readers }, (_, index) => index));
  const waiting = new Map<number, PromiseWithResolvers<IteratorResult<T>>>();
  let pulling = false;

  /** Reads the next chunk once every reader asks for it, and gives it to all of them. */
  const pull = (): void => {
    if (pulling || waiting.size < active.size || active.size === 0) return;
    pulling = true;
    const asked = [...waiting.values()];
    waiting.clear();
    iterator.next().then(
      (result) => {
        pulling = false;
        for (const one of asked) one.resolve(result);
      },
      (error: unknown) => {
        pulling = false;
        for (const one of asked) one.reject(error);
      },
    );
  };

  const leave = async (reader: number): Promise<void> => {
    if (!active.delete(reader)) return;
    waiting.delete(reader);
    if (active.size === 0) await iterator.return?.();
    else pull();
  };

  return Array.from({ length: readers }, (_, reader) => ({
    leave: () => leave(reader),
    [Symbol.asyncIterator]: (): AsyncIterator<T> => ({
      next: async () => {
        const turn = Promise.withResolvers<IteratorResult<T>>();
        waiting.set(reader, turn);
        pull();
        return await turn.promise;
      },
      return: async () => {
        await leave(reader);
        return { done: true, value: undefined };
      },
    }),
  }));
}
