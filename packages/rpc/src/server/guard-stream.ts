export interface StreamGuard {
  /** Ends the stream for its reader, and asks its source to end. */
  readonly signal: AbortSignal;
  /** Called once, when the source itself has ended. */
  readonly onEnd: () => void;
}

/**
 * A stream that ends with its signal even if its reader never asks again (a reader that went away in the middle of a
 * write does not), and that says when its source has really ended. The reader of an aborted stream gets the reason.
 */
export function guardStream<T>(source: AsyncIterable<T>, { signal, onEnd }: StreamGuard): AsyncIterable<T> {
  const iterator = source[Symbol.asyncIterator]();
  let rejectPending: ((reason: unknown) => void) | undefined;
  let ended = false;
  /** Whether the source ended by itself, which is what its reader gets then, whatever the signal does later. */
  let exhausted = false;

  const end = (): void => {
    if (ended) return;
    ended = true;
    signal.removeEventListener("abort", onAbort);
    onEnd();
  };
  const close = async (): Promise<void> => {
    try {
      await iterator.return?.();
    } catch {
      // The source failed while it was being ended; nothing waits for it any more.
    } finally {
      end();
    }
  };
  const onAbort = (): void => {
    rejectPending?.(signal.reason);
    // It does not fail: the source's own failure is left to it.
    close().catch(() => undefined);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });

  const pull = async (): Promise<IteratorResult<T>> => {
    try {
      const result = await iterator.next();
      if (result.done !== true) return result;
      exhausted = !signal.aborted;
      end();
      return result;
    } catch (thrown) {
      end();
      throw thrown;
    }
  };

  return {
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        if (exhausted) return { done: true, value: undefined };
        signal.throwIfAborted();
        return await new Promise<IteratorResult<T>>((resolve, reject) => {
          rejectPending = reject;
          pull().then(resolve, reject);
        });
      },
      return: async () => {
        await close();
        return { done: true, value: undefined };
      },
    }),
  };
}
