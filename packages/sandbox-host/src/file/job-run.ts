import { type Deadline, isReason, SandboxError } from "@turnbox/core";
import type { Frame, FromWorker, ToWorker } from "./frame.ts";
import type { Lease } from "./lane.ts";

/** A piece that an operation sent ahead of its output. */
export interface Piece {
  readonly bytes: Buffer;
  readonly about: unknown;
}

/** A job on its worker. Disposing one that has not ended kills the worker. */
export interface JobRun<Output> extends Disposable {
  /** The next piece, as slowly as it is asked for; null when the output is there. */
  next(): Promise<Piece | null>;
  /** After `next` was null. */
  readonly output: Output;
}

/** What the worker is told to undo has so long for it, before it is killed. */
const UNDO_MS = 1000;

/**
 * Does a job on a leased worker. The deadline, which ends with the job, ends it at any time, also where nobody asks for the next
 * piece any more; with a body the worker is told first, so that it can take back what it began.
 */
export function startJob<Output>(
  lease: Lease,
  job: Extract<ToWorker, { kind: "job" }>,
  { deadline, body }: { readonly deadline: Deadline; readonly body: AsyncIterable<Uint8Array> | undefined },
): JobRun<Output> {
  const { worker } = lease;
  const { signal } = deadline;
  let isOver = false;
  let output: { readonly value: Output } | undefined;
  let bodyFailure: { readonly thrown: unknown } | undefined;

  const giveBack = (how: "release" | "discard"): void => {
    deadline[Symbol.dispose]();
    lease[how]();
  };
  const end = (): void => {
    isOver = true;
    signal.removeEventListener("abort", onAbort);
  };
  const discard = (): void => {
    end();
    giveBack("discard");
  };
  const onAbort = (): void => {
    if (isOver) return;
    if (body === undefined) discard();
    else
      AbortSignal.timeout(UNDO_MS).addEventListener(
        "abort",
        () => {
          if (!isOver) discard();
        },
        { once: true },
      );
  };
  signal.addEventListener("abort", onAbort, { once: true });

  const pump = async (source: AsyncIterable<Uint8Array>): Promise<void> => {
    try {
      for await (const piece of abortable(source, signal)) {
        if (isOver || output !== undefined) break;
        await worker.send({ kind: "data" }, piece);
      }
      await worker.send({ kind: "end" });
    } catch (thrown) {
      bodyFailure = { thrown };
      await worker.send({ kind: "broken" });
    }
  };

  const sent = worker.send(job);
  const pumped = body === undefined ? undefined : sent.then(() => pump(body));
  pumped?.catch(() => undefined);

  /**
   * The worker is free when it has heard the end of the body too; what answers has heard all of its job. One that has sent
   * more than its answer is not: the next job, which may be another session's, would take that for its own.
   */
  const finish = (): void => {
    end();
    const giveFree = (): void => {
      giveBack(worker.held() === 0 ? "release" : "discard");
    };
    if (pumped === undefined) {
      giveFree();
      return;
    }
    pumped.then(giveFree, () => {
      giveBack("discard");
    });
  };

  const settle = (frame: Frame<FromWorker> | null): Piece | null => {
    if (frame === null) {
      const wasAborted = isOver || signal.aborted;
      discard();
      if (wasAborted) throw SandboxError.from(signal.reason ?? new DOMException("disposed", "AbortError"));
      throw new SandboxError("INTERNAL", "a file worker ended in the middle of its work", {
        admitted: "unknown",
        cause: new Error(worker.complaint()),
      });
    }
    const { head } = frame;
    switch (head.kind) {
      case "piece":
        return { bytes: frame.body, about: head.about };
      case "done":
        output = { value: outputOf(head, frame.body) as Output };
        finish();
        return null;
      case "failed":
        if (!isReason(head.reason)) throw new Error("a worker fails for a reason that is none");
        finish();
        throw failureOf(head);
      case "ready":
        throw new Error("a worker says twice that it is ready");
      default:
        throw new Error(`a worker says what it cannot say: ${JSON.stringify(head satisfies never)}`);
    }
  };
  /** A worker that does not keep to what it may say is no use to the next job either. */
  const nonsense = (cause: unknown): SandboxError => {
    if (!isOver) discard();
    return new SandboxError("INTERNAL", "a file worker gave no answer that can be read", {
      admitted: "unknown",
      cause,
    });
  };

  const failureOf = (head: Extract<FromWorker, { kind: "failed" }>): SandboxError => {
    const admitted = head.admitted === null ? {} : { admitted: head.admitted };
    if (bodyFailure !== undefined) {
      const cause = SandboxError.from(signal.aborted ? signal.reason : bodyFailure.thrown);
      const { reason, message, metadata } = cause;
      return head.admitted === null ? cause : new SandboxError(reason, message, { metadata, cause, ...admitted });
    }
    const { reason, message, metadata, detail } = head;
    const cause = detail === "" ? {} : { cause: new Error(detail) };
    return new SandboxError(reason, message, { metadata, ...admitted, ...cause });
  };

  if (signal.aborted) onAbort();
  return {
    next: async () => {
      if (output !== undefined) return null;
      if (isOver) return settle(null);
      try {
        return settle(await worker.next());
      } catch (thrown) {
        throw thrown instanceof SandboxError ? thrown : nonsense(thrown);
      }
    },
    get output() {
      if (output === undefined) throw new Error("the job has not ended");
      return output.value;
    },
    [Symbol.dispose]: () => {
      if (!isOver) discard();
    },
  };
}

function outputOf({ output, body }: Extract<FromWorker, { kind: "done" }>, bytes: Buffer): unknown {
  return body === "none" ? output : { ...(output as object), content: bytes.toString("utf8") };
}

/** The source until it ends or the signal aborts, whatever the source waits for. */
async function* abortable(source: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const parts = source[Symbol.asyncIterator]();
  const aborted = Promise.withResolvers<never>();
  aborted.promise.catch(() => undefined);
  const onAbort = (): void => {
    aborted.reject(signal.reason as Error);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    for (;;) {
      const part = await Promise.race([parts.next(), aborted.promise]);
      if (part.done === true) return;
      yield part.value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
