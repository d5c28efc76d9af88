import { SandboxError } from "@turnbox/core";

/**
 * Waits for the work until the signal aborts, and throws the signal's reason as a `SandboxError` then. The work itself goes
 * on for others that wait for it; a failure of it that comes later is ignored.
 */
export async function untilAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  work.catch(() => undefined);
  if (signal.aborted) throw SandboxError.from(signal.reason);
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => {
    aborted.reject(SandboxError.from(signal.reason));
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
