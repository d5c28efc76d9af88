import { extname } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { type CommandExit, type CommandRunner, invalidArgument, SandboxError } from "@turnbox/core";
import type { Change } from "./change.ts";
import type { DiffJob, DiffLine } from "./job.ts";

/** A change with the bytes that it takes as JSON. */
export interface SizedChange extends Change {
  readonly bytes: number;
}

/** Compares two trees in a process of its own, which is killed at the job's deadline and with the signal. */
export type CompareInChild = (job: DiffJob, call: { readonly signal: AbortSignal }) => Promise<readonly SizedChange[]>;

/** Enough for as many changes as there may be; more is a defect. */
const MAX_HEAP_MIB = 1024;
const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;
const MAX_COMPLAINT_BYTES = 4096;
/** The process ends by itself a little before it is killed, and says so. */
const KILL_GRACE_MS = 2000;
// The same file runs from the build (.js) and from source (.ts).
const WORKER = fileURLToPath(new URL(`./diff-worker${extname(import.meta.url)}`, import.meta.url));

export function createCompareInChild({
  runner,
  nodePath,
}: {
  readonly runner: CommandRunner;
  readonly nodePath: string;
}): CompareInChild {
  return async (job, { signal }) => {
    assertWanted(signal);
    const args = [`--max-old-space-size=${MAX_HEAP_MIB}`, WORKER];
    const child = await runner.start(
      { command: nodePath, args, deadlineMs: job.deadlineMs + KILL_GRACE_MS },
      { signal },
    );
    const complaint = readStart(child.stderr);
    child.stdin.end(JSON.stringify(job));
    const changes: SizedChange[] = [];
    let last: DiffLine | undefined;
    try {
      for await (const line of linesOf(child.stdout)) {
        const parsed = JSON.parse(line) as DiffLine;
        if ("change" in parsed) changes.push({ ...parsed.change, bytes: line.length });
        else last = parsed;
      }
    } catch (thrown) {
      child.kill();
      await child.exit;
      assertWanted(signal);
      throw thrown;
    }
    const exit = await child.exit;
    assertWanted(signal);
    if (last !== undefined && "end" in last) return changes;
    throw last !== undefined && "failure" in last ? toError(last.failure, job) : diedOf(exit, await complaint);
  };
}

function assertWanted(signal: AbortSignal): void {
  if (signal.aborted) throw SandboxError.from(signal.reason);
}

function toError(failure: Extract<DiffLine, { failure: unknown }>["failure"], job: DiffJob): SandboxError {
  switch (failure.kind) {
    case "limit":
      return invalidArgument(
        "path",
        `must name a directory that is smaller: ${JSON.stringify(job.path)} ${failure.message}`,
      );
    case "deadline":
      return tooLate();
    case "io":
      return new SandboxError("STORAGE_UNAVAILABLE", `the files cannot be compared: ${failure.message}`, {
        admitted: "no",
      });
  }
}

function diedOf(exit: CommandExit, complaint: string): SandboxError {
  if (exit.kind === "signaled" && exit.deadline === "passed") return tooLate();
  return new SandboxError("INTERNAL", "the comparison ended without an answer", {
    admitted: "no",
    cause: new Error(`${JSON.stringify(exit)} ${complaint}`),
  });
}

function tooLate(): SandboxError {
  return new SandboxError(
    "DEADLINE_EXCEEDED",
    "the comparison took too long; name a smaller directory in `path`, or ask without text",
    { admitted: "no" },
  );
}

/** The lines of a stream, as they come. */
async function* linesOf(stream: Readable): AsyncGenerator<string> {
  let rest: Buffer[] = [];
  let total = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    total += chunk.length;
    if (total > MAX_OUTPUT_BYTES) throw new SandboxError("INTERNAL", "a comparison answers without end");
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      yield Buffer.concat([...rest, chunk.subarray(start, end)]).toString("utf8");
      rest = [];
      start = end + 1;
    }
    rest.push(chunk.subarray(start));
  }
}

async function readStart(stream: Readable): Promise<string> {
  let text = "";
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>)
      if (text.length < MAX_COMPLAINT_BYTES) text += chunk.toString("utf8").slice(0, MAX_COMPLAINT_BYTES);
  } catch {
    // It was cut off; what came is enough.
  }
  return text;
}
