import type { Interceptor } from "@connectrpc/connect";
import { type Clock, SandboxError, setAlarm } from "@turnbox/core";

export interface DeadlineLimits {
  /** For unary calls whose caller names no deadline. */
  readonly defaultUnaryMs: number;
  /** For unary calls whose caller names one that is longer. */
  readonly maxUnaryMs: number;
}

export const DEFAULT_DEADLINE_LIMITS: DeadlineLimits = { defaultUnaryMs: 15 * 60_000, maxUnaryMs: 60 * 60_000 };

/**
 * Every unary call ends: at its caller's deadline, at ours, or when its caller is gone, even if the handler does not
 * notice. Streams have no deadline but the one their caller sets; they end by themselves.
 */
export function createDeadlineInterceptor(limits: DeadlineLimits, clock: Clock): Interceptor {
  return (next) => async (request) => {
    if (request.stream) return await next(request);
    const named = request.header.has("connect-timeout-ms") || request.header.has("grpc-timeout");
    const call = new AbortController();
    // A later answer or failure is ignored.
    const ended = Promise.withResolvers<Awaited<ReturnType<typeof next>>>();
    const end = (reason: unknown): void => {
      call.abort(reason);
      ended.reject(reason);
    };
    const onAbort = (): void => {
      end(request.signal.reason);
    };
    if (request.signal.aborted) onAbort();
    else request.signal.addEventListener("abort", onAbort, { once: true });
    const turnOff = setAlarm(clock, named ? limits.maxUnaryMs : limits.defaultUnaryMs, () => {
      end(new SandboxError("DEADLINE_EXCEEDED", "the server's limit for a call passed"));
    });
    next({ ...request, signal: call.signal }).then(ended.resolve, ended.reject);
    try {
      return await ended.promise;
    } finally {
      turnOff();
      request.signal.removeEventListener("abort", onAbort);
    }
  };
}
