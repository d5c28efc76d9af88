/** Runs work of one key one after the other, in the order of the calls; other keys are not held up. */
export interface KeyedLock {
  /** Whoever waits longer than its signal lives leaves with the signal's reason, and its work is not begun. */
  run<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

export function createKeyedLock(): KeyedLock {
  const tails = new Map<string, Promise<void>>();
  return {
    run: async (key, work, signal) => {
      const before = tails.get(key) ?? Promise.resolve();
      const done = Promise.withResolvers<void>();
      const tail = before.then(() => done.promise);
      tails.set(key, tail);
      try {
        await waitFor(before, signal);
        return await work();
      } finally {
        done.resolve();
        if (tails.get(key) === tail) tails.delete(key);
      }
    },
  };
}

async function waitFor(before: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) {
    await before;
    return;
  }
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => {
    aborted.reject(signal.reason as Error);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([before, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
