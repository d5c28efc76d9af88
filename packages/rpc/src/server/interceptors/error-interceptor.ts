import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { type Clock, type Log, SandboxError } from "@turnbox/core";
import { requestIdOf } from "../call-context.ts";
import { toFailure } from "../failure.ts";

/** Unexpected failures that a caller can provoke at will must not fill the disk. */
const MAX_LOGGED_PER_SECOND = 20;

/** Turns every throw into an answer of the error table. What is unexpected goes to the log, under the request's id. */
export function createErrorInterceptor({ log, clock }: { readonly log: Log; readonly clock: Clock }): Interceptor {
  const throttle = new LogThrottle({ clock, maxPerSecond: MAX_LOGGED_PER_SECOND });

  return (next) => async (request) => {
    const requestId = requestIdOf({ values: request.contextValues });
    const answer = (thrown: unknown): unknown => {
      const failure = toFailure(hasLeft(thrown, request.signal) ? left() : thrown, requestId);
      if ("internalCause" in failure) {
        const admitted = throttle.admit();
        if (admitted !== undefined) {
          const method = `${request.service.typeName}/${request.method.name}`;
          log.error({ err: failure.internalCause, requestId, method, ...admitted }, "call failed");
        }
      }
      return failure.answer;
    };
    try {
      const response = await next(request);
      return response.stream ? { ...response, message: mapFailure(response.message, answer) } : response;
    } catch (thrown) {
      throw answer(thrown);
    }
  };
}

/**
 * Whether the work ended because its caller did: a stream that was reset ends its call with what the protocol layer makes
 * of the reset's code, and some clients use a code that means an internal error.
 */
const hasLeft = (thrown: unknown, signal: AbortSignal): boolean =>
  signal.aborted && thrown === signal.reason && thrown instanceof ConnectError && thrown.code === Code.Internal;

const left = (): SandboxError => new SandboxError("CANCELLED", "the caller has left");

async function* mapFailure<T>(stream: AsyncIterable<T>, answer: (thrown: unknown) => unknown): AsyncIterable<T> {
  try {
    yield* stream;
  } catch (thrown) {
    throw answer(thrown);
  }
}

/** Bounds how often something that callers can provoke is logged, and counts what is left out. */
export class LogThrottle {
  readonly #clock: Clock;
  readonly #maxPerSecond: number;
  #windowStartMs = Number.NEGATIVE_INFINITY;
  #admitted = 0;
  #suppressed = 0;

  constructor({ clock, maxPerSecond }: { readonly clock: Clock; readonly maxPerSecond: number }) {
    this.#clock = clock;
    this.#maxPerSecond = maxPerSecond;
  }

  /** Returns how many were left out since the last one that was logged; undefined if this one is left out as well. */
  admit(): { readonly suppressed: number } | undefined {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#windowStartMs >= 1000) {
      this.#windowStartMs = nowMs;
      this.#admitted = 0;
    }
    if (this.#admitted >= this.#maxPerSecond) {
      this.#suppressed += 1;
      return undefined;
    }
    this.#admitted += 1;
    const suppressed = this.#suppressed;
    this.#suppressed = 0;
    return { suppressed };
  }
}
