import type { Interceptor } from "@connectrpc/connect";
import type { Clock } from "../../clock/clock.ts";
import { SandboxError } from "../../error/sandbox-error.ts";

export interface DeadlineLimits {
  /** For unary calls whose caller names no deadline. */
  readonly defaultUnaryMs: number;
  /** For unary calls whose caller names one that is longer. */
  readonly maxUnaryMs: number;
}

export const DEFAULT_DEADLINE_LIMITS: DeadlineLimits = { defaultUnaryMs: 15 * 60_000, maxUnaryMs: 60 * 60_000 };

/** Why the watch over a call that has ended stops. One value for all: making an error for each call is not free. */
const CALL_ENDED = new Error("the call has ended");

/**
 * Every unary call ends: at its caller's deadline, at ours, or when its caller is gone, even where the handler does not
 * notice. Streams have no deadline but the one their caller sets; they end by themselves.
 */
export function createDeadlineInterceptor(limits: DeadlineLimits, clock: Clock): Interceptor {
  return (next) => async (request) => {
    if (request.stream) return await next(request);
    const named = request.header.has("connect-timeout-ms") || request.header.has("grpc-timeout");
    const call = new AbortController();
    const watch = new AbortController();
    const onAbort = (): void => {
      call.abort(request.signal.reason);
    };
    if (request.signal.aborted) onAbort();
    else request.signal.addEventListener("abort", onAbort, { once: true });
    clock.sleep(named ? limits.maxUnaryMs : limits.defaultUnaryMs, { signal: watch.signal }).then(
      () => {
        call.abort(new SandboxError("DEADLINE_EXCEEDED", "the server's limit for a call passed"));
      },
      () => undefined,
    );
    try {
      return await untilAborted(next({ ...request, signal: call.signal }), call.signal);
    } finally {
      watch.abort(CALL_ENDED);
      request.signal.removeEventListener("abort", onAbort);
    }
  };
}

/** The answer, or the signal's reason if that comes first. A later answer or failure is nobody's any more. */
async function untilAborted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    const onAbort = (): void => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    answer.then(resolve, reject).finally(() => {
      signal.removeEventListener("abort", onAbort);
    });
  });
}
