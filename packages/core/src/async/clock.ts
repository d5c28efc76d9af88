/** Time, injected wherever a decision depends on it, so that tests need not wait. */
export interface Clock {
  /** Wall time in milliseconds since the epoch: for what is shown or stored. */
  nowMs(): number;
  /** Milliseconds from an arbitrary start that never go back: for durations and deadlines. */
  monotonicMs(): number;
  /** Resolves after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, options?: { readonly signal?: AbortSignal }): Promise<void>;
  /** What `setAlarm` does, where the clock can do it with less than a sleep. */
  alarm?(ms: number, ring: () => void): () => void;
}

/** The longest wait of one timer: Node fires at once where a delay does not fit into 31 bits. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: async (ms, { signal } = {}) => {
    signal?.throwIfAborted();
    const endMs = performance.now() + ms;
    for (let leftMs = ms; leftMs > 0; leftMs = endMs - performance.now()) {
      await wait(Math.min(leftMs, MAX_TIMER_MS), signal);
    }
  },
  alarm: (ms, ring) => {
    let leftMs = ms;
    const set = (): NodeJS.Timeout => setTimeout(wake, Math.min(leftMs, MAX_TIMER_MS));
    const wake = (): void => {
      leftMs -= MAX_TIMER_MS;
      if (leftMs > 0) timer = set();
      else ring();
    };
    let timer = set();
    return () => {
      clearTimeout(timer);
    };
  },
};

async function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
