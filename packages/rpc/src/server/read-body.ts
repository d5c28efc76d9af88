import type { Readable } from "node:stream";
import { Code, ConnectError } from "@connectrpc/connect";

export interface BodyLimits {
  /** The longest pause between two pieces of a body. */
  readonly idleMs: number;
  /** The longest a body of a single message may take. */
  readonly wholeMs: number;
}

export const DEFAULT_BODY_LIMITS: BodyLimits = { idleMs: 60_000, wholeMs: 120_000 };

export interface BodyGuard {
  /** Absent, a body may be silent: a dialogue. */
  readonly idleMs?: number;
  /** Absent, only pauses are judged: an upload may take its time. */
  readonly wholeMs?: number;
  /** Abort when the request is gone or no longer wanted; a read that is under way may never end by itself. */
  readonly signals: readonly AbortSignal[];
}

type Asked = PromiseWithResolvers<IteratorResult<Uint8Array>>;

const NEWS = ["readable", "end", "error", "close"] as const;
const OVER: IteratorResult<Uint8Array> = { done: true, value: undefined };

/**
 * The body of a request as it comes, no faster than it is asked for. Gives up on one that comes too slowly, or whose sender
 * is gone. The source itself is left alone then: ending it would tear the connection down before the answer is written, and
 * its writer does the rest.
 *
 * It is disposed of when the call is over. Its reader may have stopped without a word (the protocol layer does, at a message that does
 * not decode), and what it listens to lives as long as the server. One that still reads gets a failure, and not the end of the body.
 */
export function readBody(source: Readable, guard: BodyGuard): AsyncIterable<Uint8Array> & Disposable {
  const reader = new BodyReader(source, guard);
  return {
    [Symbol.asyncIterator]: () => reader,
    [Symbol.dispose]: () => {
      reader[Symbol.dispose]();
    },
  };
}

/** Most bodies are there when they are asked for, so nothing is set up before a reader has to wait. */
class BodyReader implements AsyncIterator<Uint8Array>, Disposable {
  readonly #source: Readable;
  readonly #signals: readonly AbortSignal[];
  readonly #idleMs: number | undefined;
  readonly #deadlineMs: number | undefined;
  #asked: Asked | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isListening = false;
  #call: "under way" | "over" = "under way";

  constructor(source: Readable, { idleMs, wholeMs, signals }: BodyGuard) {
    this.#source = source;
    this.#signals = signals;
    this.#idleMs = idleMs;
    this.#deadlineMs = wholeMs === undefined ? undefined : performance.now() + wholeMs;
  }

  // Not an async function: what it throws, it throws to who asks.
  next(): Promise<IteratorResult<Uint8Array>> {
    const asked: Asked = Promise.withResolvers();
    this.#asked = asked;
    this.#tell();
    if (this.#asked === asked) this.#wait();
    return asked.promise;
  }

  return(): Promise<IteratorResult<Uint8Array>> {
    this.#end();
    return Promise.resolve(OVER);
  }

  #end(): void {
    this.#settle(({ resolve }) => {
      resolve(OVER);
    });
    this.#stopListening();
  }

  [Symbol.dispose](): void {
    this.#call = "over";
    this.#tell();
    this.#stopListening();
  }

  /** Answers who asked, if there is something to say. */
  readonly #tell = (): void => {
    if (this.#asked === undefined) return;
    const aborted = this.#signals.find((signal) => signal.aborted);
    if (aborted !== undefined) {
      this.#fail(aborted.reason);
      return;
    }
    if (this.#call === "over") {
      this.#fail(new ConnectError("the call is over", Code.Canceled));
      return;
    }
    const piece = this.#source.read() as Buffer | null;
    if (piece !== null) {
      this.#settle(({ resolve }) => {
        resolve({ done: false, value: piece });
      });
    } else if (this.#source.readableEnded) {
      this.#end();
    } else if (this.#source.destroyed) {
      this.#fail(this.#source.errored ?? new ConnectError("the request's body broke off", Code.Canceled));
    }
  };

  #wait(): void {
    const waitMs = Math.min(this.#idleMs ?? Infinity, (this.#deadlineMs ?? Infinity) - performance.now());
    if (waitMs !== Infinity) {
      this.#timer = setTimeout(
        () => {
          this.#fail(new ConnectError("the request's body did not arrive in time", Code.DeadlineExceeded));
        },
        Math.max(0, waitMs),
      );
    }
    if (this.#isListening) return;
    this.#isListening = true;
    for (const event of NEWS) this.#source.on(event, this.#tell);
    for (const signal of this.#signals) signal.addEventListener("abort", this.#tell, { once: true });
  }

  #fail(reason: unknown): void {
    this.#settle(({ reject }) => {
      reject(reason);
    });
    this.#stopListening();
  }

  #settle(answer: (asked: Asked) => void): void {
    const asked = this.#asked;
    this.#asked = undefined;
    clearTimeout(this.#timer);
    if (asked !== undefined) answer(asked);
  }

  #stopListening(): void {
    if (!this.#isListening) return;
    this.#isListening = false;
    for (const event of NEWS) this.#source.off(event, this.#tell);
    for (const signal of this.#signals) signal.removeEventListener("abort", this.#tell);
  }
}
