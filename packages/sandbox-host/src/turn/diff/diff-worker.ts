import { readFileSync } from "node:fs";
import { DiffFailure } from "./failure.ts";
import type { DiffJob, DiffLine } from "./job.ts";
import { runJob } from "./run-job.ts";

/**
 * The comparing process: a job on its input, lines on its output. It may be killed at any time, and ends by itself at its
 * deadline and when the service that started it is gone.
 */
const TICKS_BETWEEN_CHECKS = 256;
const BATCH_CHARACTERS = 256 * 1024;

const job = JSON.parse(readFileSync(0, "utf8")) as DiffJob;
const parent = process.ppid;
const endMs = performance.now() + job.deadlineMs;
let ticks = 0;
let batch = "";

function tick(): void {
  ticks += 1;
  if (ticks % TICKS_BETWEEN_CHECKS !== 0) return;
  if (process.ppid !== parent) process.exit(1);
  if (performance.now() > endMs) throw new DiffFailure("deadline", "took too long");
}

function send(line: DiffLine): void {
  batch += `${JSON.stringify(line)}\n`;
  if (batch.length > BATCH_CHARACTERS) flush();
}

/** Writes to a pipe block until they are taken, so nothing piles up here. */
function flush(): void {
  process.stdout.write(batch);
  batch = "";
}

function toFailure(thrown: unknown): DiffFailure {
  if (thrown instanceof DiffFailure) return thrown;
  const { code } = thrown as { readonly code?: unknown };
  // Errors of the system are the trees'; all others are ours, and end the process.
  if (typeof code === "string" && /^E[A-Z0-9]+$/.test(code)) return new DiffFailure("io", `reading failed: ${code}`);
  throw thrown;
}

try {
  for (const change of runJob(job, { nowMs: () => performance.now(), tick })) send({ change });
  send({ end: { looks: ticks } });
} catch (thrown) {
  const { kind, message } = toFailure(thrown);
  send({ failure: { kind, message } });
}
flush();
