import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type CommandRunner, invalidArgument } from "@turnbox/core";
import { readChild, readWaiter, startWaiter } from "../execution/waiter.ts";
import type { ProcessLife, SignalSpec, SpawnedProcess, SpawnSpec } from "../runtime.ts";
import type { HostTree } from "./host-tree.ts";

const SIGKILL = 9;
const MAX_SIGNAL = 64;
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Starts a program of the host with a waiter. `marks` name it for later; the waiter itself carries only the first. */
export async function spawnOnHost(
  deps: { readonly runner: CommandRunner; readonly clock: Clock },
  {
    spec,
    cwd,
    marks: [containerMark, execMark],
  }: { readonly spec: SpawnSpec; readonly cwd: string; readonly marks: readonly [string, string] },
): Promise<{ readonly pid: number }> {
  const [program, ...args] = spec.argv;
  const path = spec.env["PATH"] ?? SYSTEM_PATH;
  await findProgram(program, path);
  const [name = "", value = ""] = containerMark.split("=");
  await startWaiter(deps, {
    ...spec,
    // A shell without job control has its background commands ignore these two.
    command: ["env", "--default-signal=INT,QUIT", execMark, program, ...args],
    env: { PATH: path, ...spec.env, [name]: value },
    cwd,
  });
  return { pid: (await readChild(spec.directory)) ?? 0 };
}

async function findProgram(program: string, path: string): Promise<void> {
  const candidates = program.includes("/") ? [program] : path.split(":").map((directory) => join(directory, program));
  const found = await Promise.all(
    candidates.map((file) =>
      access(file, constants.X_OK).then(
        () => true,
        () => false,
      ),
    ),
  );
  if (!found.includes(true)) throw invalidArgument("argv", "there is no such program");
}

/** Without a sandbox none can die: a process whose waiter is gone was ended with it. */
export async function inspectOnHost({ directory }: SpawnedProcess): Promise<ProcessLife> {
  const waiter = await readWaiter(directory);
  if (waiter.kind === "running") return { kind: "running" };
  if (waiter.kind === "gone") return { kind: "unknown" };
  const number = waiter.exitCode - 128;
  return number >= 1 && number <= MAX_SIGNAL
    ? { kind: "signaled", signal: number }
    : { kind: "exited", exitCode: waiter.exitCode };
}

export async function signalOnHost(
  spawned: SpawnedProcess,
  { signal, scope }: SignalSpec,
  tree: HostTree,
): Promise<void> {
  if (scope === "tree") {
    if (signal === SIGKILL) await tree.kill();
    else for (const { pid } of await tree.look()) send(pid, signal);
    return;
  }
  // Its waiter has not reaped it, so the pid is still its own.
  const pid = await readChild(spawned.directory);
  if (pid !== undefined && (await inspectOnHost(spawned)).kind === "running") send(pid, signal);
}

function send(pid: number, signal: number): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended in the meantime.
  }
}
