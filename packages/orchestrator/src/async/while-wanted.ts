/** Waits for the work as long as the caller wants; the work itself goes on, and its failure is then ignored. */
export async function whileWanted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const left = Promise.withResolvers<never>();
  const onAbort = (): void => {
    left.reject(signal.reason as Error);
  };
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, left.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
