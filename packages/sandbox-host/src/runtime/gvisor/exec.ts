import { rmSync, writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { type CommandExit, invalidArgument, randomToken, type RunningCommand, SandboxError } from "@turnbox/core";
import { type OutputRelay, relayOutput } from "../execution/relay-output.ts";
import type { ExecSpec } from "../runtime.ts";
import { type GvisorContext, liveState, runsc } from "./context.ts";
import { execFiles, markWork, readPid, removeExecFiles } from "./exec-files.ts";
import { createProcessSpec } from "./oci-spec.ts";
import { classifyStartFailure } from "./runsc-command.ts";
import { MARKER_VARIABLE } from "./sweep.ts";

const POLL_MS = 2;
const START_DEADLINE_MS = 30_000;
const MARKER_CHARS = 26;
/** The kernel's own bound for one argument; here for all, so that runsc can quote them in an error. */
const MAX_ARGV_BYTES = 128 * 1024;

/** A process that runs inside. */
export interface StartedProcess {
  readonly command: RunningCommand;
  readonly stdout: OutputRelay;
  readonly stderr: OutputRelay;
  /** Its pid inside, which is its process group too. */
  readonly pid: number;
  readonly marker: string;
  /** Called when it has ended: from then on nothing tells of it any more. */
  release(this: void): void;
}

/** Called where a start was given up halfway: something may run inside, or come to run. */
export type AbandonedStart = (marker: string) => Promise<void>;

/**
 * Starts a process by `runsc exec`. The process file, which holds the environment, is readable for us alone and gone when
 * this answers, so no secret shows in a process list. runsc writes the inner pid when the process runs: a start failed if
 * and only if runsc has exited without one, whatever its exit code. Where runsc was killed before, or does not come to
 * an end, nobody knows what has run.
 */
export async function startProcess(
  context: GvisorContext,
  id: string,
  {
    spec,
    signal,
    onAbandoned,
  }: { readonly spec: ExecSpec; readonly signal: AbortSignal; readonly onAbandoned: AbandonedStart },
): Promise<StartedProcess> {
  signal.throwIfAborted();
  checkSpec(spec);
  if ((await liveState(context, id)) === undefined) throw lost(id);
  const marker = randomToken(MARKER_CHARS);
  const files = execFiles(context.layout, id, marker);
  const release = (): void => {
    removeExecFiles(files);
    context.ownExecs.delete(marker);
  };
  context.ownExecs.add(marker);
  try {
    const env = { ...spec.env, [MARKER_VARIABLE]: marker };
    writeFileSync(files.processPath, JSON.stringify(createProcessSpec({ ...spec, env })), { mode: 0o600 });
    const args = ["exec", `--process=${files.processPath}`, `--internal-pid-file=${files.pidPath}`, id];
    // The deadline of the process is enforced inside, where its whole tree is reached.
    const command = await context.runner.start({ ...runsc(context, args, Number.MAX_SAFE_INTEGER), stdio: "fifos" });
    const relay = { clock: context.clock, onLinger: context.lingering.add };
    const stdout = relayOutput(command.stdout, relay);
    const stderr = relayOutput(command.stderr, relay);
    const started = await awaitPid(context, { command, pidPath: files.pidPath, signal });
    if (started.kind === "running") {
      rmSync(files.processPath, { force: true });
      return { command, stdout, stderr, pid: started.pid, marker, release };
    }
    if (started.kind === "failed") throw await startFailure(context, id, await text(stderr.output));
    command.kill();
    await onAbandoned(marker);
    signal.throwIfAborted();
    const message = `container ${id} does not start processes`;
    throw new SandboxError("RUNTIME_UNAVAILABLE", message, { admitted: "unknown" });
  } catch (thrown) {
    release();
    throw thrown;
  }
}

/**
 * Puts on record that a process has something to do, or has nothing yet. What there is a record of is ended by a later
 * service; a shell that waits for its first script ends by itself with this one. Throws where it should have work and
 * cannot be put on record.
 */
export function recordProcess(
  context: GvisorContext,
  id: string,
  { process, work }: { readonly process: StartedProcess; readonly work: "some" | "none" },
): void {
  try {
    markWork(execFiles(context.layout, id, process.marker), work);
  } catch (thrown) {
    // One that is taken for having work is looked for in vain.
    if (work === "some") throw thrown;
  }
}

interface Starting {
  readonly command: RunningCommand;
  readonly pidPath: string;
  readonly signal: AbortSignal;
}

type StartOutcome = { readonly kind: "running"; readonly pid: number } | { readonly kind: "failed" | "abandoned" };

async function awaitPid({ clock }: GvisorContext, { command, pidPath, signal }: Starting): Promise<StartOutcome> {
  const seen: { end?: CommandExit } = {};
  void command.ended.then((exit) => {
    seen.end = exit;
  });
  const deadlineMs = clock.monotonicMs() + START_DEADLINE_MS;
  for (;;) {
    // In this order: a process that ended at once has left its pid before.
    const { end } = seen;
    const pid = readPid(pidPath);
    if (pid > 0) return { kind: "running", pid };
    if (end !== undefined) return { kind: end.kind === "exited" ? "failed" : "abandoned" };
    if (signal.aborted || clock.monotonicMs() > deadlineMs) return { kind: "abandoned" };
    await clock.sleep(POLL_MS);
  }
}

/** What runsc's own words say about a start that failed. */
export async function startFailure(context: GvisorContext, id: string, message: string): Promise<SandboxError> {
  const failure = (await liveState(context, id)) === undefined ? "lost" : classifyStartFailure(message);
  const cause = new Error(message.trim());
  switch (failure) {
    case "no_program":
      return refusal("argv", "there is no such program", cause);
    case "no_directory":
      return refusal("cwd", "there is no such directory", cause);
    case "paused":
      return new SandboxError("INVALID_STATE", `container ${id} is paused`, { cause });
    case "lost":
      return lost(id, cause);
    case "other":
      return new SandboxError("RUNTIME_UNAVAILABLE", `container ${id} did not start the process`, { cause });
  }
}

function refusal(field: string, rule: string, cause: Error): SandboxError {
  return new SandboxError("INVALID_ARGUMENT", `${field}: ${rule}`, { metadata: { field, rule }, cause });
}

export function lost(id: string, cause?: unknown): SandboxError {
  return new SandboxError("SANDBOX_LOST", `container ${id} does not run`, { admitted: "no", cause });
}

/** Refuses what no process could be given. */
export function checkSpec({ argv, env, cwd }: Pick<ExecSpec, "argv" | "env" | "cwd">): void {
  const variables = Object.entries(env);
  if (argv.some((arg) => arg.includes("\0"))) throw invalidArgument("argv", "holds a NUL byte");
  if (argv.reduce((sum, arg) => sum + Buffer.byteLength(arg) + 1, 0) > MAX_ARGV_BYTES) {
    throw invalidArgument("argv", `is longer than ${String(MAX_ARGV_BYTES)} bytes`);
  }
  if (variables.some(([name, value]) => name === "" || /[=\0]/.test(name) || value.includes("\0"))) {
    throw invalidArgument("env", "holds a name or a value that no process can be given");
  }
  if (!cwd.startsWith("/") || cwd.includes("\0")) throw invalidArgument("cwd", "is not an absolute path");
}
