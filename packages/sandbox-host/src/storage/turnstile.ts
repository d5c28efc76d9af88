import { SandboxError } from "@turnbox/core";

/** Lets work on the same key through one at a time, in the order of asking; work on different keys does not wait. */
export interface Turnstile {
  /** Whoever waits longer than its signal lives leaves the queue with the signal's reason, and its work is not begun. */
  pass<T>(key: string, work: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

export function createTurnstile(): Turnstile {
  const last = new Map<string, Promise<void>>();
  return {
    pass: async (key, work, signal) => {
      const previous = last.get(key) ?? Promise.resolve();
      const done = Promise.withResolvers<void>();
      const mine = previous.then(() => done.promise);
      last.set(key, mine);
      try {
        await abortable(previous, signal);
        return await work();
      } finally {
        done.resolve();
        if (last.get(key) === mine) last.delete(key);
      }
    },
  };
}

async function abortable(waited: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) throw SandboxError.from(signal.reason);
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => {
    aborted.reject(SandboxError.from(signal.reason));
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([waited, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
