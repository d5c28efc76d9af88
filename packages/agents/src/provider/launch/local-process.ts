import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { homedir } from "node:os";
import { type Clock, SandboxError } from "@turnbox/client";
import { errnoOf } from "@turnbox/client/internal";
import { orAborted } from "./stop-gently.ts";
import type { LaunchExit } from "./launcher.ts";

/** Where programs are found unless the caller gives a PATH. */
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** How long the output of an ended program may stay open in the hands of what left its process group. */
const PIPE_GRACE_MS = 1000;
/** How often it is waited as long for a reader that has not taken what there is. */
const READER_ROUNDS = 60;

export interface LocalProcessSpec {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** A child in a process group of its own. Whatever of the group is left when the child ends, ends too. */
export interface LocalProcess {
  readonly pid: number;
  readonly child: ChildProcessWithoutNullStreams;
  /** Resolves when the child has ended. */
  readonly exit: Promise<LaunchExit>;
  /** Resolves when it has ended and its output was read to the end, or is given up. */
  readonly closed: Promise<LaunchExit>;
  kill(signal: NodeJS.Signals): void;
}

export async function startLocalProcess(
  spec: LocalProcessSpec,
  { clock, signal }: { readonly clock: Clock; readonly signal?: AbortSignal | undefined },
): Promise<LocalProcess> {
  if (signal?.aborted === true) throw SandboxError.from(signal.reason);
  const child = spawnGroup(spec);
  let hasEnded = false;
  const kill = (name: NodeJS.Signals): void => {
    if (!hasEnded && child.pid !== undefined) killGroup(child.pid, name);
  };
  const exit = new Promise<LaunchExit>((resolve) => {
    child.once("exit", (exitCode, name) => {
      kill("SIGKILL");
      hasEnded = true;
      resolve({ exitCode: exitCode ?? undefined, signal: name ?? undefined, reason: undefined });
    });
  });
  const allRead = new Promise<void>((resolve) => child.once("close", () => resolve()));
  // A pipe that breaks ends like one that is closed, and a signal may come too late: the exit says why.
  for (const source of [child, child.stdin, child.stdout, child.stderr]) source.on("error", () => undefined);
  try {
    await orAborted(once(child, "spawn"), signal);
  } catch (thrown) {
    kill("SIGKILL");
    throw startFailure(spec, thrown);
  }
  const closed = exit.then(async (end) => {
    const outputs = [child.stdout, child.stderr];
    const over = new AbortController();
    const grace = (): Promise<void> => clock.sleep(PIPE_GRACE_MS, { signal: over.signal }).catch(() => undefined);
    for (let round = 0; round < READER_ROUNDS && !over.signal.aborted; round += 1) {
      await Promise.race([allRead, grace()]);
      // What is left has a reader that is slow; if nothing is, others hold the pipe.
      if (outputs.every(({ readableLength }) => readableLength === 0)) over.abort();
    }
    over.abort();
    for (const stream of outputs) stream.destroy();
    return end;
  });
  return { pid: child.pid ?? 0, child, exit, closed, kill };
}

function spawnGroup(spec: LocalProcessSpec): ChildProcessWithoutNullStreams {
  try {
    return spawn(spec.command, [...spec.args], {
      cwd: spec.cwd,
      // Without a level, bash takes a socket on its input for a remote login and reads the user's own start files.
      env: { PATH: SYSTEM_PATH, HOME: homedir(), SHLVL: "1", ...spec.env },
      detached: true,
      stdio: "pipe",
    });
  } catch (thrown) {
    throw startFailure(spec, thrown);
  }
}

function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is empty: no process is left to be signalled.
  }
}

function startFailure({ command, cwd }: LocalProcessSpec, cause: unknown): SandboxError {
  if (cause instanceof SandboxError && errnoOf(cause.cause) === undefined) return cause;
  const errno = errnoOf(cause) ?? "";
  const metadata = { command, errno };
  if (errno.startsWith("ERR_INVALID") || errno === "E2BIG")
    return new SandboxError("INVALID_ARGUMENT", `${command} cannot be started`, { cause, metadata });
  if (["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"].includes(errno))
    return new SandboxError("OVERLOADED", `${command} cannot be started now`, { cause, metadata });
  return new SandboxError("COMMAND_MISSING", `${command} cannot be started in ${cwd}`, { cause, metadata });
}
