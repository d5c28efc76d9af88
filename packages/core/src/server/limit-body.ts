import { Code, ConnectError } from "@connectrpc/connect";

export interface BodyLimits {
  /** The longest pause between two pieces of a body. */
  readonly idleMs: number;
  /** The longest a body of a single message may take. */
  readonly wholeMs: number;
}

export const DEFAULT_BODY_LIMITS: BodyLimits = { idleMs: 60_000, wholeMs: 120_000 };

export interface BodyGuard {
  readonly idleMs: number;
  /** Absent, only pauses are judged: an upload may take its time. */
  readonly wholeMs?: number;
  /** Abort when the request is gone or no longer wanted; a read that is under way may never end by itself. */
  readonly signals: readonly AbortSignal[];
}

/** Gives up on a body that comes too slowly, or whose sender is gone. */
export function limitBody(
  body: AsyncIterable<Uint8Array>,
  { idleMs, wholeMs, signals }: BodyGuard,
): AsyncIterable<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  const deadlineMs = performance.now() + (wholeMs ?? Number.POSITIVE_INFINITY);

  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    for (const signal of signals) signal.throwIfAborted();
    const waitMs = Math.max(0, Math.min(idleMs, deadlineMs - performance.now()));
    return await new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
      const onAbort = (): void => {
        clearTimeout(timer);
        reject(signals.find(({ aborted }) => aborted)?.reason as Error);
      };
      const timer = setTimeout(() => {
        reject(new ConnectError("the request's body did not arrive in time", Code.DeadlineExceeded));
      }, waitMs);
      for (const signal of signals) signal.addEventListener("abort", onAbort, { once: true });
      iterator
        .next()
        .then(resolve, reject)
        .finally(() => {
          clearTimeout(timer);
          for (const signal of signals) signal.removeEventListener("abort", onAbort);
        });
    });
  };

  return {
    [Symbol.asyncIterator]: () => ({
      next,
      // Ending the source would tear the connection down before the answer is written; whoever writes it sees to the rest.
      return: async () => await Promise.resolve({ done: true, value: undefined }),
    }),
  };
}
