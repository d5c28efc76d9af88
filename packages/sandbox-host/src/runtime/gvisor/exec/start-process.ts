import { writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { type CommandExit, invalidArgument, randomToken, type RunningCommand, SandboxError } from "@turnbox/core";
import { type Stdio } from "@turnbox/core/command";
import { type OutputRelay, relayOutput } from "../../execution/relay-output.ts";
import type { SupervisedCommand } from "../../execution/supervise-execution.ts";
import type { ExecSpec } from "../../runtime.ts";
import { type GvisorContext, liveState, lost, runsc } from "../context.ts";
import { type ExecFiles, execFiles, markWork, readPid, removeExecFiles, removeFile, writePid } from "./exec-files.ts";
import { createProcessSpec } from "../container/oci-spec.ts";
import { classifyStartFailure } from "../runsc-command.ts";
import { followProcess } from "./sentry-process.ts";
import { startInSentry } from "./start-in-sentry.ts";
import type { ContainerState } from "../container/state-file.ts";
import { MARKER_VARIABLE } from "./process-tree.ts";

const POLL_MS = 2;
const START_DEADLINE_MS = 30_000;
const MARKER_CHARS = 26;
/** The kernel's own bound for one argument; here for all, so that runsc can quote them in an error. */
const MAX_ARGV_BYTES = 128 * 1024;

/** A process that runs inside. */
export interface StartedProcess {
  /** What stands for it on the host. */
  readonly command: SupervisedCommand;
  readonly stdout: OutputRelay;
  readonly stderr: OutputRelay;
  /** Its pid inside, which is its process group too. */
  readonly pid: number;
  readonly marker: string;
  /** Called when it has ended: removes the last record of it. */
  release(this: void): void;
}

/** Called if a start was given up half-way: something may run inside, or come to run. */
export type AbandonedStart = (marker: string) => Promise<void>;

interface Starting {
  readonly spec: ExecSpec;
  readonly signal: AbortSignal;
  readonly onAbandoned: AbandonedStart;
}

/**
 * Starts a process, by the sentry itself if that is proven to work, else by `runsc exec`. There is a file of it before
 * anything runs. When it is not known what has run, because the start was given up or not answered, that is undone.
 */
export async function startProcess(context: GvisorContext, id: string, starting: Starting): Promise<StartedProcess> {
  const { spec, signal, onAbandoned } = starting;
  signal.throwIfAborted();
  checkSpec(spec);
  const state = await liveState(context, id);
  if (state === undefined) throw lost(id);
  const marker = randomToken(MARKER_CHARS);
  const files = execFiles(context.layout, id, marker);
  const release = (): void => {
    removeExecFiles(files);
    context.ownExecs.delete(marker);
  };
  context.ownExecs.add(marker);
  try {
    const marked = { ...spec, env: { ...spec.env, [MARKER_VARIABLE]: marker } };
    const attempt = { state, files, spec: marked, signal };
    const started = (await startBySentry(context, attempt)) ?? (await startByRunsc(context, attempt));
    if (started.kind === "running") return { ...started, marker, release };
    if (started.kind === "failed") throw await startFailure(context, id, started.why);
    await onAbandoned(marker);
    signal.throwIfAborted();
    if ((await liveState(context, id)) === undefined) throw lost(id);
    const message = `container ${id} does not start processes`;
    throw new SandboxError("RUNTIME_UNAVAILABLE", message, { admitted: "unknown" });
  } catch (thrown) {
    release();
    throw thrown;
  }
}

interface Attempt {
  readonly state: ContainerState;
  readonly files: ExecFiles;
  readonly spec: ExecSpec;
  readonly signal: AbortSignal;
}

type Attempted =
  | ({ readonly kind: "running" } & Omit<StartedProcess, "marker" | "release">)
  | { readonly kind: "failed"; readonly why: string }
  | { readonly kind: "abandoned" };

/** Undefined if it cannot be asked, and nothing has run. */
async function startBySentry(
  context: GvisorContext,
  { state, files, spec, signal }: Attempt,
): Promise<Attempted | undefined> {
  const { id, status, controlSocketPath: socketPath } = state;
  const { helper } = context;
  if (context.execs.way === "runsc" || helper === undefined || socketPath === undefined) return undefined;
  if (status === "paused") return undefined;
  writeFileSync(files.processPath, "", { mode: 0o600 });
  const start = await startInSentry(context, helper, {
    id,
    socketPath,
    process: spec,
    deadlineMs: START_DEADLINE_MS,
    signal,
  });
  if (start.kind === "not_asked") return undefined;
  if (start.kind !== "running") return start;
  const { pid, stdio } = start;
  writePid(files, pid);
  const { ended, kill } = followProcess(context, { id, socketPath, pid });
  return { kind: "running", pid, command: { stdin: stdio.stdin, ended, kill }, ...relayOutputs(context, stdio) };
}

/**
 * The process file, which holds the environment, is readable for us alone and goes when the process runs, so no secret
 * shows in a process list. runsc writes the inner pid when the process runs: a start failed if and only if runsc has exited
 * without one, whatever its exit code. If runsc was killed before, or does not end, it is not known what has run.
 */
async function startByRunsc(context: GvisorContext, { state, files, spec, signal }: Attempt): Promise<Attempted> {
  writeFileSync(files.processPath, JSON.stringify(createProcessSpec(spec)), { mode: 0o600 });
  const args = ["exec", `--process=${files.processPath}`, `--internal-pid-file=${files.pidPath}`, state.id];
  // The deadline of the process is enforced inside, where its whole tree is reached.
  const command = await context.runner.start({ ...runsc(context, args, Number.MAX_SAFE_INTEGER), stdio: "fifos" });
  const outputs = relayOutputs(context, command);
  const started = await awaitPid(context, { command, pidPath: files.pidPath, signal });
  if (started.kind === "running") {
    removeFile(files.processPath);
    return { kind: "running", pid: started.pid, command, ...outputs };
  }
  if (started.kind === "failed") return { kind: "failed", why: await text(outputs.stderr.output) };
  command.kill();
  return { kind: "abandoned" };
}

function relayOutputs({ clock, lingering }: GvisorContext, { stdout, stderr }: Omit<Stdio, "stdin">) {
  const relay = { clock, onLinger: lingering.add };
  return { stdout: relayOutput(stdout, relay), stderr: relayOutput(stderr, relay) };
}

/**
 * Puts on record that a process has something to do, or has nothing yet. What there is a record of is ended by a later
 * service; a shell that waits for its first script ends by itself with this one. Throws if it should have work and
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
    // One that is taken for having work is looked for without effect.
    if (work === "some") throw thrown;
  }
}

interface Awaited {
  readonly command: RunningCommand;
  readonly pidPath: string;
  readonly signal: AbortSignal;
}

type StartOutcome = { readonly kind: "running"; readonly pid: number } | { readonly kind: "failed" | "abandoned" };

async function awaitPid({ clock }: GvisorContext, { command, pidPath, signal }: Awaited): Promise<StartOutcome> {
  const seen: { end?: CommandExit } = {};
  command.ended.then(
    (exit) => {
      seen.end = exit;
    },
    // How it ended is not known; without a pid its start has failed by the deadline.
    () => undefined,
  );
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
