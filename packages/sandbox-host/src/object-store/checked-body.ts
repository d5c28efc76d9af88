import { finished, type Readable, Transform, type TransformCallback } from "node:stream";
import { type Clock, SandboxError, setAlarm } from "@turnbox/core";
import type { ContentCheck } from "./content-check.ts";

/** How many bytes of a body are read ahead of its reader. */
const READ_AHEAD_BYTES = 256 * 1024;

export interface CheckedBodyOptions {
  readonly key: string;
  /** Where the bytes come from. The body ends it, however it ends itself. */
  readonly source: Readable;
  /** How many there have to be. */
  readonly bytes: number;
  /** Only where the whole object is read. */
  readonly check?: ContentCheck | undefined;
  /** What a failure of the source means. */
  readonly failureOf: (thrown: unknown) => Error;
  /** Gives up where the reader wants more and the source has sent nothing for so long. */
  readonly stall?: { readonly clock: Clock; readonly ms: number };
  readonly signal: AbortSignal;
}

/** The body of an object: it fails where what comes is not all, or not what was put, and releases its source at its end. */
export class CheckedBody extends Transform {
  readonly #options: CheckedBodyOptions;
  #received = 0;
  #turnOff: () => void = () => undefined;

  constructor(options: CheckedBodyOptions) {
    super({ highWaterMark: READ_AHEAD_BYTES });
    this.#options = options;
    const { source, signal, failureOf } = options;
    // A failure before the body is read must not end the service. A reader that comes later gets it all the same.
    this.on("error", () => undefined);
    const onAbort = (): void => {
      this.destroy(signal.reason as Error);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.once("close", () => {
      signal.removeEventListener("abort", onAbort);
      this.#turnOff();
      source.destroy();
    });
    finished(source, { writable: false }, (thrown) => {
      if (thrown !== undefined && thrown !== null) this.destroy(failureOf(thrown));
    });
    if (signal.aborted) onAbort();
    else source.pipe(this);
    this.#watch();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#received += chunk.byteLength;
    if (this.#received > this.#options.bytes) {
      done(damaged(this.#options.key, "it is longer than what was put"));
      return;
    }
    this.#options.check?.update(chunk);
    done(null, chunk);
  }

  override _flush(done: TransformCallback): void {
    const { key, bytes, check, failureOf } = this.#options;
    if (this.#received < bytes) {
      done(failureOf(new Error(`the body of ${key} ended after ${this.#received} of ${bytes} bytes`)));
    } else done(check?.isGood() === false ? damaged(key, "its content is not what was put") : null);
  }

  /** A reader that takes its time is no stall: then there are bytes that it has not taken. */
  #watch(): void {
    const { stall, failureOf, key } = this.#options;
    if (stall === undefined || this.destroyed) return;
    const received = this.#received;
    this.#turnOff = setAlarm(stall.clock, stall.ms, () => {
      if (this.#received > received || this.readableLength > 0) this.#watch();
      else this.destroy(failureOf(new Error(`the body of ${key} does not go on`)));
    });
  }
}

const damaged = (key: string, how: string): SandboxError =>
  new SandboxError("OBJECT_DAMAGED", `the object ${key} is damaged: ${how}`, { metadata: { key } });
