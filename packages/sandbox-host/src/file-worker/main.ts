import { FileFailure, toFileFailure } from "../file/failure.ts";
import {
  createBlockingReader,
  type FromWorker,
  MAX_TEXT_CHARACTERS,
  type ToWorker,
  writeFrameSync,
} from "../file/frame.ts";
import { FILE_OPERATIONS } from "../file/file-operations.ts";
import type { OperationContext, OperationTable } from "../file/operation.ts";
import { createWalk } from "../file/walk.ts";
import { journalOperation } from "../process/journal-operation.ts";
import { textTool } from "../tool/text/text-tool.ts";

/**
 * The program of a file worker: one job after another from its input, their results to its output, until the input ends. Everything
 * blocks, so the service sets the pace; it may be killed at any time.
 */
const INPUT = 0;
const OUTPUT = 1;
/** Everything that a file worker does: the operations on files, and those of other rooms. */
const OPERATIONS: OperationTable = { ...FILE_OPERATIONS, journal: journalOperation, textTool };
type Job = Extract<ToWorker, { kind: "job" }>;

// What tools write inside has these permissions by default.
process.umask(0o022);
send({ kind: "ready" });
const nextFrame = createBlockingReader(INPUT);
for (let frame = nextFrame(); frame !== null; frame = nextFrame()) {
  if (frame.head.kind === "job") await work(frame.head);
}

async function work(job: Job): Promise<void> {
  const body = createBody(job);
  // What the operation opened is closed after its output is sent: to close a file is a message to the storage's daemon.
  using walk = createWalk(job.root, { device: job.device ?? undefined });
  try {
    sendOutput((await perform(job, { walk, body: body.pieces })) ?? null);
  } catch (thrown) {
    const { reason, message, metadata, admitted = null } = toFileFailure(thrown);
    const detail = reason === "INTERNAL" && thrown instanceof Error ? (thrown.stack ?? thrown.message) : "";
    send({ kind: "failed", reason, message, metadata, admitted, detail });
  }
  // The rest of the body comes even if the operation did not read it, and must not be taken for the next job.
  body.drain();
}

async function perform(job: Job, given: Pick<OperationContext, "walk" | "body">): Promise<unknown> {
  const operation = OPERATIONS[job.name];
  if (operation === undefined) throw new Error(`no operation ${job.name}`);
  const context = {
    ...given,
    send: (bytes: Uint8Array, about: unknown = null) => {
      send({ kind: "piece", about }, bytes);
    },
  };
  return await operation(context, job.input as never);
}

/** The content of a tool's output, which is mostly long, is sent as it is: JSON would quote all its line ends. */
function sendOutput(output: unknown): void {
  if (!hasContent(output)) {
    send({ kind: "done", output, body: "none" });
    return;
  }
  const { content, ...rest } = output;
  send({ kind: "done", output: rest, body: "content" }, content);
}

function hasContent(output: unknown): output is { readonly content: string } {
  if (typeof output !== "object" || output === null || !("content" in output)) return false;
  return typeof output.content === "string" && output.content.length <= MAX_TEXT_CHARACTERS;
}

function createBody(job: Job) {
  let isOver = job.body === "none";
  const next = (): Buffer | null => {
    if (isOver) return null;
    const frame = nextFrame();
    if (frame?.head.kind === "data") return frame.body;
    isOver = true;
    // If the service is gone, the operation undoes what it began as well; then the end of the input ends this process.
    if (frame === null || frame.head.kind === "broken") throw new FileFailure("CANCELLED", "the upload was broken off");
    return null;
  };
  return {
    *pieces(): Iterable<Buffer> {
      for (let piece = next(); piece !== null; piece = next()) yield piece;
    },
    drain: () => {
      while (!isOver) {
        try {
          next();
        } catch {
          // A body that broke off has ended as well.
        }
      }
    },
  };
}

function send(head: FromWorker, body?: Uint8Array | string): void {
  try {
    writeFrameSync(OUTPUT, head, body);
  } catch {
    // The service is gone.
    process.exit(0);
  }
}
