import { extname } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { type CommandRunner, type RunningCommand, SandboxError } from "@turnbox/core";
import { createFrameReader, encodeFrame, type Frame, type FromWorker, type ToWorker } from "./frame.ts";

/** The process of a file worker. */
export interface WorkerProcess {
  readonly pid: number;
  /** Settles when the process has ended. One that hangs in the storage stays, even if it is killed. */
  readonly gone: Promise<unknown>;
  send(head: ToWorker, body?: Uint8Array): Promise<void>;
  /** The next frame; null if the process has ended or was killed. Rejects if what has come is no frame. */
  next(): Promise<Frame<FromWorker> | null>;
  /** Bytes that it has sent and that are not read. */
  held(): number;
  /** A call of `next` that waits returns null at once, also if the process hangs. */
  kill(): void;
  /** The start of its error output, for the log. */
  complaint(): string;
}

/** Enough for the largest output of an operation; more is a defect. */
const MAX_HEAP_MIB = 256;
/**
 * After this many backtracks a match goes on in an engine whose time is linear in the text, unless that does not support the
 * pattern. Ten million take 0.1 to 0.3 s; well-behaved patterns stay below for 4 MiB of text.
 */
const LINEAR_REGEXPS = [
  "--enable-experimental-regexp-engine",
  "--enable-experimental-regexp-engine-on-excessive-backtracks",
  "--regexp-backtracks-before-fallback=10000000",
];
const MAX_COMPLAINT_CHARACTERS = 4096;
/** The lane ends workers long before. */
const LIFETIME_MS = 20 * 24 * 3_600_000;
// The program names the operations of several rooms, so it is started and never imported. It runs from the build (.js) and
// from source (.ts).
const WORKER = fileURLToPath(new URL(`../file-worker/main${extname(import.meta.url)}`, import.meta.url));

export async function startWorkerProcess(options: {
  readonly runner: CommandRunner;
  readonly nodePath: string;
}): Promise<WorkerProcess> {
  const args = [
    `--max-old-space-size=${MAX_HEAP_MIB}`,
    "--max-semi-space-size=2",
    ...LINEAR_REGEXPS,
    "--no-warnings",
    WORKER,
  ];
  // Real pipes: their data is read into one shared buffer, not into a new one of 64 KiB each time.
  const spec = { command: options.nodePath, args, cwd: "/", deadlineMs: LIFETIME_MS, stdio: "fifos" } as const;
  const child = await options.runner.start(spec);
  const complaint = keepStart(child.stderr);
  child.stdout.on("error", () => undefined);
  const frames = createFrameReader(child.stdout);
  const first = await frames.next();
  if (first?.head.kind !== "ready") {
    child.kill();
    throw new SandboxError("INTERNAL", "a file worker does not start", {
      admitted: "no",
      cause: new Error(complaint()),
    });
  }
  return {
    pid: child.pid,
    gone: child.ended,
    send: createSend(child),
    next: frames.next,
    held: frames.held,
    kill: () => {
      child.kill();
      frames.end();
    },
    complaint,
  };
}

/** Resolves when there is room for more. A send to a worker that has ended succeeds: its output shows its end. */
function createSend({ stdin }: RunningCommand): WorkerProcess["send"] {
  return async (head, body) => {
    if (stdin.destroyed || stdin.write(encodeFrame(head, body))) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        for (const event of ["drain", "close", "error"]) stdin.off(event, done);
        resolve();
      };
      for (const event of ["drain", "close", "error"]) stdin.on(event, done);
    });
  };
}

function keepStart(stream: Readable): () => string {
  let text = "";
  stream.on("data", (chunk: Buffer) => {
    if (text.length < MAX_COMPLAINT_CHARACTERS) text += chunk.toString("utf8");
  });
  stream.on("error", () => undefined);
  return () => text.slice(0, MAX_COMPLAINT_CHARACTERS);
}
