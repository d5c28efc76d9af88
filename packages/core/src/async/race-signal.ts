/**
 * The outcome of the work, or the signal's own reason if that aborts first. A signal that has aborted wins over any outcome. The
 * work itself goes on, and a failure of it that comes later has a handler.
 */
export async function raceSignal<T>(work: PromiseLike<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await work;
  work.then(undefined, () => undefined);
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => {
    aborted.reject(signal.reason as Error);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
