import { type Deadline, isReason, raceSignal, SandboxError } from "@turnbox/core";
import type { Frame, FromWorker, ToWorker } from "./frame.ts";
import type { Lease } from "./lane.ts";

/** A piece that an operation sent ahead of its output. */
export interface Piece {
  readonly bytes: Buffer;
  readonly about: unknown;
}

/** A job on its worker. To dispose one that has not ended kills the worker. */
export interface JobRun<Output> extends Disposable {
  /** The next piece; the worker sends no faster than pieces are asked for. Null when the output is there. */
  next(): Promise<Piece | null>;
  /** After `next` was null. */
  readonly output: Output;
}

type JobFrame = Extract<ToWorker, { kind: "job" }>;
type Done = Extract<FromWorker, { kind: "done" }>;
type Failed = Extract<FromWorker, { kind: "failed" }>;

interface JobOptions {
  /** The job disposes it at its end. */
  readonly deadline: Deadline;
  readonly body: AsyncIterable<Uint8Array> | undefined;
}

/** A worker that is to undo what it began has so long before it is killed. */
const UNDO_MS = 1000;

/**
 * Does a job on a leased worker. The deadline ends the job at any time, also if no further piece is asked for. The worker of
 * a job with a body first gets the end of the body, so that it can undo what it began.
 */
export function startJob<Output>(lease: Lease, job: JobFrame, options: JobOptions): JobRun<Output> {
  const run = new RunningJob<Output>(lease, options);
  run.begin(job);
  return run;
}

class RunningJob<Output> implements JobRun<Output> {
  readonly #lease: Lease;
  readonly #deadline: Deadline;
  readonly #body: AsyncIterable<Uint8Array> | undefined;
  /** When the whole body is sent, or its end; undefined for a job without one. */
  #bodySent: Promise<void> | undefined;
  #bodyFailure: { readonly thrown: unknown } | undefined;
  #output: { readonly value: Output } | undefined;
  #isOver = false;

  constructor(lease: Lease, { deadline, body }: JobOptions) {
    this.#lease = lease;
    this.#deadline = deadline;
    this.#body = body;
  }

  begin(job: JobFrame): void {
    const { signal } = this.#deadline;
    signal.addEventListener("abort", this.#onAbort, { once: true });
    const sent = this.#lease.worker.send(job);
    const body = this.#body;
    if (body !== undefined) this.#bodySent = sent.then(() => this.#sendBody(body));
    this.#bodySent?.catch(() => undefined);
    if (signal.aborted) this.#onAbort();
  }

  async next(): Promise<Piece | null> {
    if (this.#output !== undefined) return null;
    if (this.#isOver) throw this.#endFailure();
    try {
      const frame = await this.#lease.worker.next();
      if (frame === null) throw this.#endFailure();
      return this.#take(frame);
    } catch (thrown) {
      throw thrown instanceof SandboxError ? thrown : this.#unreadable(thrown);
    }
  }

  get output(): Output {
    if (this.#output === undefined) throw new Error("the job has not ended");
    return this.#output.value;
  }

  [Symbol.dispose](): void {
    if (!this.#isOver) this.#discard();
  }

  readonly #onAbort = (): void => {
    if (this.#isOver) return;
    if (this.#body === undefined) {
      this.#discard();
      return;
    }
    const kill = (): void => {
      if (!this.#isOver) this.#discard();
    };
    AbortSignal.timeout(UNDO_MS).addEventListener("abort", kill, { once: true });
  };

  async #sendBody(body: AsyncIterable<Uint8Array>): Promise<void> {
    const { worker } = this.#lease;
    try {
      for await (const piece of untilAborted(body, this.#deadline.signal)) {
        if (this.#isOver || this.#output !== undefined) break;
        await worker.send({ kind: "data" }, piece);
      }
      await worker.send({ kind: "end" });
    } catch (thrown) {
      this.#bodyFailure = { thrown };
      await worker.send({ kind: "broken" });
    }
  }

  /** Null if the frame is the output. */
  #take({ head, body }: Frame<FromWorker>): Piece | null {
    switch (head.kind) {
      case "piece":
        return { bytes: body, about: head.about };
      case "done":
        this.#output = { value: outputOf(head, body) as Output };
        this.#finish();
        return null;
      case "failed":
        if (!isReason(head.reason)) throw new Error("a file worker failed with an unknown reason");
        this.#finish();
        throw this.#failureOf(head);
      case "ready":
        throw new Error("a file worker sent a second ready frame");
      default:
        throw new Error(`a file worker sent an unknown frame: ${JSON.stringify(head satisfies never)}`);
    }
  }

  /**
   * A worker that has sent its output has read all of its job, and is free once it has got the end of the body as well. One
   * that has sent more than its output is not: the next job, perhaps of another session, would take that for its own.
   */
  #finish(): void {
    this.#end();
    const giveFree = (): void => {
      this.#giveBack(this.#lease.worker.held() === 0 ? "release" : "discard");
    };
    if (this.#bodySent === undefined) {
      giveFree();
      return;
    }
    this.#bodySent.then(giveFree, () => {
      this.#giveBack("discard");
    });
  }

  /** The worker's process ended, or the job was ended. */
  #endFailure(): SandboxError {
    const { signal } = this.#deadline;
    const wasAborted = this.#isOver || signal.aborted;
    this.#discard();
    if (wasAborted) return SandboxError.from(signal.reason ?? new DOMException("disposed", "AbortError"));
    return new SandboxError("INTERNAL", "a file worker ended in the middle of its work", {
      admitted: "unknown",
      cause: new Error(this.#lease.worker.complaint()),
    });
  }

  /** A worker that breaks the protocol gets no further job. */
  #unreadable(cause: unknown): SandboxError {
    if (!this.#isOver) this.#discard();
    return new SandboxError("INTERNAL", "a file worker gave no answer that can be read", {
      admitted: "unknown",
      cause,
    });
  }

  #failureOf(head: Failed): SandboxError {
    const admitted = head.admitted === null ? {} : { admitted: head.admitted };
    if (this.#bodyFailure !== undefined) {
      const { signal } = this.#deadline;
      const cause = SandboxError.from(signal.aborted ? signal.reason : this.#bodyFailure.thrown);
      const { reason, message, metadata } = cause;
      return head.admitted === null ? cause : new SandboxError(reason, message, { metadata, cause, ...admitted });
    }
    const { reason, message, metadata, detail } = head;
    const cause = detail === "" ? {} : { cause: new Error(detail) };
    return new SandboxError(reason, message, { metadata, ...admitted, ...cause });
  }

  #discard(): void {
    this.#end();
    this.#giveBack("discard");
  }

  #end(): void {
    this.#isOver = true;
    this.#deadline.signal.removeEventListener("abort", this.#onAbort);
  }

  #giveBack(how: "release" | "discard"): void {
    this.#deadline[Symbol.dispose]();
    this.#lease[how]();
  }
}

function outputOf({ output, body }: Done, bytes: Buffer): unknown {
  return body === "none" ? output : { ...(output as object), content: bytes.toString("utf8") };
}

/** The source until it ends or the signal aborts, even while the source is waited for. */
async function* untilAborted(source: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const parts = source[Symbol.asyncIterator]();
  for (;;) {
    const part = await raceSignal(parts.next(), signal);
    if (part.done === true) return;
    yield part.value;
  }
}
