/**
 * A stream that also ends, as if by itself, when the signal aborts. Its source is left as it is then: a read may be under
 * way, which nobody waits for, and whoever owns the source ends it. A reader that stops early ends the source as usual.
 */
export async function* endWith<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  try {
    while (!signal.aborted) {
      const next = await nextUnlessAborted(iterator, signal);
      if (next?.done !== false) return;
      yield next.value;
    }
  } finally {
    if (!signal.aborted) await iterator.return?.();
  }
}

async function nextUnlessAborted<T>(
  iterator: AsyncIterator<T, unknown>,
  signal: AbortSignal,
): Promise<IteratorResult<T, unknown> | undefined> {
  return await new Promise((resolve, reject) => {
    const onAbort = (): void => {
      resolve(undefined);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    iterator
      .next()
      .then(resolve, reject)
      .finally(() => {
        signal.removeEventListener("abort", onAbort);
      });
  });
}
