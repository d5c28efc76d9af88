import { copyFile, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { release } from "node:os";
import { join } from "node:path";
import { hasReason, randomToken, SandboxError } from "@turnbox/core";
import type { KeyedLock } from "../execution/keyed-lock.ts";
import type { Execution } from "../runtime.ts";
import { bootContainer, removeContainer } from "./boot.ts";
import { readCgroupMounts } from "./cgroup.ts";
import type { GvisorContext } from "./context.ts";
import { probeId, probeRoot } from "./leftovers.ts";
import { parseVersion } from "./runsc-command.ts";

const VERSION_DEADLINE_MS = 10_000;

/** Puts the static program in place that is PID 1 of every container and sweeps inside of it. */
export async function installInit({ layout }: GvisorContext, busyboxPath: string): Promise<void> {
  await mkdir(layout.initDirectory, { recursive: true, mode: 0o755 });
  await mkdir(layout.runscRoot, { recursive: true, mode: 0o700 });
  await mkdir(layout.containersDirectory, { recursive: true, mode: 0o700 });
  const target = join(layout.initDirectory, "busybox");
  try {
    const [source, present] = await Promise.all([stat(busyboxPath), stat(target).catch(() => undefined)]);
    if (present?.size === source.size && present.mtimeMs >= source.mtimeMs) return;
    await copyFile(busyboxPath, `${target}.new`);
    await rename(`${target}.new`, target);
  } catch (cause) {
    throw unavailable(`there is no static busybox at ${busyboxPath} (package busybox-static)`, cause);
  }
}

export async function readVersion({ runner, runscPath }: GvisorContext, signal: AbortSignal): Promise<string> {
  const spec = { command: runscPath, args: ["--version"], deadlineMs: VERSION_DEADLINE_MS };
  const { stdout } = await runner.run(spec, { signal }).catch((cause: unknown) => {
    signal.throwIfAborted();
    throw unavailable(
      hasReason(cause, "COMMAND_MISSING") ? `${runscPath} is not installed` : `${runscPath} does not run`,
      cause,
    );
  });
  const parsed = parseVersion(stdout);
  if (parsed === undefined) throw unavailable(`${runscPath} does not say what version it is`);
  if (parsed.supported === "too_old") throw unavailable(`runsc ${parsed.version} is older than 20240101`);
  return parsed.version;
}

/** Mounts, namespaces and cgroups of sandboxes are root's to make. */
export function checkRoot(uid = process.getuid?.()): void {
  if (uid !== 0) throw unavailable(`it needs root, and this process runs as uid ${String(uid)}`);
}

export async function checkCgroups(): Promise<void> {
  if ((await readCgroupMounts()).length === 0) throw unavailable("no cgroup hierarchy is mounted");
}

/** Boots a container on an empty root and runs something in it, unless that was proven on this boot of the machine. */
export async function proveByRun(
  context: GvisorContext,
  {
    version,
    signal,
    lock,
    runProgram,
  }: {
    readonly version: string;
    readonly signal: AbortSignal;
    readonly lock: KeyedLock;
    runProgram(id: string): Promise<Execution>;
  },
): Promise<void> {
  const { proofPath } = context.layout;
  const machine = await describeMachine(version);
  if ((await readFile(proofPath, "utf8").catch(() => "")) === machine) return;
  const id = probeId(randomToken);
  await lock.run(id, async () => {
    await runProbe(context, { id, signal, runProgram });
  });
  await writeFile(`${proofPath}.new`, machine, { mode: 0o600 });
  await rename(`${proofPath}.new`, proofPath);
}

async function runProbe(
  context: GvisorContext,
  {
    id,
    signal,
    runProgram,
  }: { readonly id: string; readonly signal: AbortSignal; runProgram(id: string): Promise<Execution> },
): Promise<void> {
  const rootPath = probeRoot(context, id);
  await mkdir(rootPath);
  try {
    await bootContainer(context, { id, rootPath, hostname: "probe", limits: {} }, signal);
    const execution = await runProgram(id);
    execution.stdin.end();
    execution.stdout.resume();
    execution.stderr.resume();
    const exit = await execution.exit;
    if (exit.kind !== "exited" || exit.exitCode !== 0) throw new Error(`the probe ended with ${JSON.stringify(exit)}`);
  } catch (cause) {
    signal.throwIfAborted();
    throw unavailable(explain(cause), cause);
  } finally {
    await removeContainer(context, id);
    await rm(rootPath, { recursive: true, force: true });
  }
}

/** What a proof holds for: another boot, kernel or runsc needs a new one. */
async function describeMachine(version: string): Promise<string> {
  const bootId = await readFile("/proc/sys/kernel/random/boot_id", "utf8");
  return JSON.stringify({ bootId: bootId.trim(), kernel: release(), version });
}

function unavailable(why: string, cause?: unknown): SandboxError {
  return new SandboxError("RUNTIME_UNAVAILABLE", `gVisor does not work here: ${why}`, { cause });
}

/** What a person needs to know: the runtime's own words, which are in the cause of a failed boot. */
function explain(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return thrown.cause instanceof Error ? `${thrown.message} (${thrown.cause.message})` : thrown.message;
}
