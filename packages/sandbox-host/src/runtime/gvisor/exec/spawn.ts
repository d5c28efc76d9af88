import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "@turnbox/core";
import { readWaiter, startWaiter } from "../../execution/waiter.ts";
import type { ProcessLife, SpawnedProcess, SpawnSpec } from "../../runtime.ts";
import { makeClientGroup } from "../container/client-group.ts";
import { type GvisorContext, liveState, lost, runsc } from "../context.ts";
import { causeOfDeath } from "../container/death-causes.ts";
import { type AbandonedStart, checkSpec, startFailure } from "./start-process.ts";
import { readPid } from "./exec-files.ts";
import { SPAWN_FILE } from "../container/runsc-clients.ts";
import { spawnMark } from "../container/layout.ts";
import { askSandbox } from "../container/liveness.ts";
import { createProcessSpec } from "../container/oci-spec.ts";
import { MARKER_VARIABLE } from "./process-tree.ts";

const POLL_MS = 2;
const START_DEADLINE_MS = 30_000;
const MAX_SIGNAL = 64;
/** Far above the size that a running service allows: at this size no service bounds the file, and the sandbox is paused. */
const MAX_OUTPUT_BYTES = 128 * 1024 * 1024;

/**
 * Starts a process by a `runsc exec` that is no child of the service. The sandbox keeps the descriptors of FIFO and file, so the
 * process, its input and its output need neither the service nor the command; the command only brings the exit code.
 */
export async function spawnProcess(
  context: GvisorContext,
  id: string,
  {
    spec,
    signal,
    onAbandoned,
  }: { readonly spec: SpawnSpec; readonly signal: AbortSignal; readonly onAbandoned: AbandonedStart },
): Promise<{ readonly pid: number }> {
  signal.throwIfAborted();
  checkSpec(spec);
  if ((await liveState(context, id)) === undefined) throw lost(id);
  const processPath = `${spec.directory}${SPAWN_FILE}`;
  const pidPath = pidPathOf(spec);
  const env = { ...spec.env, [MARKER_VARIABLE]: spec.name };
  try {
    await writeFile(processPath, JSON.stringify(createProcessSpec({ ...spec, env })), { mode: 0o600 });
    await writeFile(spawnMark(context.layout, id), "", { mode: 0o600 });
    const args = ["exec", `--process=${processPath}`, `--internal-pid-file=${pidPath}`, id];
    const { command, args: argv } = runsc(context, args, START_DEADLINE_MS);
    const pause = runsc(context, ["pause", id], START_DEADLINE_MS);
    const guard = { outputBytes: MAX_OUTPUT_BYTES, command: [pause.command, ...pause.args] };
    const groups = await makeClientGroup(context, id);
    await startWaiter(context, { ...spec, command: [command, ...argv], env: {}, cwd: "/", guard, groups });
    const started = await awaitPid(context, { directory: spec.directory, pidPath, signal });
    if (started.kind === "running") return { pid: started.pid };
    if (started.kind === "failed")
      throw await startFailure(context, id, await readFile(spec.outputPath, "utf8").catch(() => ""));
    await onAbandoned(spec.name);
    signal.throwIfAborted();
    throw new SandboxError("RUNTIME_UNAVAILABLE", `container ${id} does not start processes`, { admitted: "unknown" });
  } finally {
    await rm(processPath, { force: true });
  }
}

/** The pid inside, 0 if it never ran. */
export function spawnedPid(process: SpawnedProcess): number {
  return readPid(pidPathOf(process));
}

function pidPathOf({ directory }: Pick<SpawnedProcess, "directory">): string {
  return join(directory, "pid");
}

type Start = { readonly kind: "running"; readonly pid: number } | { readonly kind: "failed" | "abandoned" };

async function awaitPid(
  { clock }: GvisorContext,
  {
    directory,
    pidPath,
    signal,
  }: { readonly directory: string; readonly pidPath: string; readonly signal: AbortSignal },
): Promise<Start> {
  const deadlineMs = clock.monotonicMs() + START_DEADLINE_MS;
  for (;;) {
    // In this order: a process that ended at once has left its pid before.
    const waiter = await readWaiter(directory);
    const pid = readPid(pidPath);
    if (pid > 0) return { kind: "running", pid };
    if (waiter.kind === "ended") return { kind: "failed" };
    if (waiter.kind === "gone" || signal.aborted || clock.monotonicMs() > deadlineMs) return { kind: "abandoned" };
    await clock.sleep(POLL_MS);
  }
}

/**
 * How a spawned process is. Below 128 the code is the program's own; from there on it may be runsc's word for a sandbox
 * that died, or 128 + N for a program ended by signal N.
 */
export async function inspectProcess(
  context: GvisorContext,
  id: string,
  { process, signal }: { readonly process: SpawnedProcess; readonly signal: AbortSignal },
): Promise<ProcessLife> {
  const waiter = await readWaiter(process.directory);
  if (waiter.kind === "running") return { kind: "running" };
  if (waiter.kind === "ended" && waiter.exitCode < 128) return { kind: "exited", exitCode: waiter.exitCode };
  const sandbox = await askSandbox(context, id, signal);
  if (sandbox === undefined) return { kind: await causeOfDeath(context, id) };
  if (sandbox.pids.includes(spawnedPid(process))) return { kind: "running" };
  if (waiter.kind === "gone") return { kind: "unknown" };
  const number = waiter.exitCode - 128;
  return number >= 1 && number <= MAX_SIGNAL
    ? { kind: "signaled", signal: number }
    : { kind: "exited", exitCode: waiter.exitCode };
}
