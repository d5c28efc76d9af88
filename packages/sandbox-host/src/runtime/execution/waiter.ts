import { access, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type CommandRunner, identifyProcess, type ProcessIdentity, SandboxError } from "@turnbox/core";
import { readProgram } from "../../system/program.ts";

/** Starts the command, and outlives the service; its own file says what its arguments are. */
const WAITER_SCRIPT = readProgram("waiter.sh");

const MKFIFO_DEADLINE_MS = 10_000;
const LAUNCH_DEADLINE_MS = 10_000;
const APPEAR_MS = 10_000;
const GUARD_MS = 10_000;
const POLL_MS = 2;

export interface WaiterRequest {
  readonly directory: string;
  readonly outputPath: string;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Directories of control groups that the waiter, and with it the command, is to be in. */
  readonly groups?: readonly string[];
  /** The command that runs if the output is larger than this and no service tends it. */
  readonly guard?: { readonly outputBytes: number; readonly command: readonly string[] };
}

/** `gone`: the waiter itself was ended, and whether and how the command ended is not known. */
export type WaiterState =
  | { readonly kind: "running"; readonly waiterPid: number }
  | { readonly kind: "ended"; readonly exitCode: number }
  | { readonly kind: "gone" };

function guardOf({ guard }: WaiterRequest): readonly [string, string] {
  if (guard === undefined) return ["0", ""];
  return [String(guard.outputBytes), guard.command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ")];
}

/**
 * Makes the FIFO `input` in the directory and starts the command with its waiter; returns when the waiter waits. The output is
 * tended by this process.
 */
export async function startWaiter(
  { runner, clock }: { readonly runner: CommandRunner; readonly clock: Clock },
  request: WaiterRequest,
): Promise<void> {
  const { directory, outputPath, command } = request;
  const mkfifo = ["-m", "600", "--", join(directory, "input")];
  const { exitCode } = await runner.run({ command: "mkfifo", args: mkfifo, deadlineMs: MKFIFO_DEADLINE_MS });
  if (exitCode !== 0) throw new SandboxError("INTERNAL", "a pipe for a process cannot be made");
  await markTended(directory, identifyProcess(process.pid));
  await runner.run({
    command: "setsid",
    args: [
      "--fork",
      "/bin/sh",
      "-c",
      WAITER_SCRIPT,
      "turnbox-waiter",
      directory,
      outputPath,
      ...guardOf(request),
      (request.groups ?? []).join(":"),
      ...command,
    ],
    deadlineMs: LAUNCH_DEADLINE_MS,
    outputPath: "/dev/null",
    ...(request.env === undefined ? {} : { env: request.env }),
    ...(request.cwd === undefined ? {} : { cwd: request.cwd }),
  });
  const untilMs = clock.monotonicMs() + APPEAR_MS;
  while ((await readNumber(join(directory, "waiter"))) === undefined) {
    if (clock.monotonicMs() > untilMs)
      throw new SandboxError("RUNTIME_UNAVAILABLE", "a process does not start", { admitted: "unknown" });
    await clock.sleep(POLL_MS);
  }
}

export async function readWaiter(directory: string): Promise<WaiterState> {
  const ended = await readNumber(join(directory, "exit"));
  if (ended !== undefined) return { kind: "ended", exitCode: ended };
  const waiterPid = await readNumber(join(directory, "waiter"));
  if (waiterPid !== undefined && (await isWaiter(waiterPid, directory))) return { kind: "running", waiterPid };
  // It writes the code before it goes.
  const late = await readNumber(join(directory, "exit"));
  return late === undefined ? { kind: "gone" } : { kind: "ended", exitCode: late };
}

/**
 * Says that a service, this one unless given, tends the output from now on: for as long as it lives, the guard does nothing. If
 * the guard is at work, this waits for its end.
 */
export async function tendOutput(
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
  directory: string,
  by: ProcessIdentity | undefined = identifyProcess(process.pid),
): Promise<void> {
  await markTended(directory, by);
  const untilMs = clock.monotonicMs() + GUARD_MS;
  const isGuarding = async (): Promise<boolean> =>
    (await exists(join(directory, "guarding"))) && (await readWaiter(directory)).kind === "running";
  while (clock.monotonicMs() < untilMs && (await isGuarding())) await clock.sleep(POLL_MS, { signal });
}

async function markTended(directory: string, by: ProcessIdentity | undefined): Promise<void> {
  if (by === undefined) return;
  const path = join(directory, "tended");
  await writeFile(`${path}.new`, `${by.pid} ${by.startTicks}\n`, { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** The host's pid of the command. */
export async function readChild(directory: string): Promise<number | undefined> {
  return await readNumber(join(directory, "child"));
}

/** Lets go of the FIFO's write end. */
export async function endWaiterInput(directory: string): Promise<void> {
  const state = await readWaiter(directory);
  if (state.kind !== "running") return;
  try {
    process.kill(state.waiterPid, "SIGUSR1");
  } catch {
    // It has ended in the meantime.
  }
}

/** Pids are used again; the directory among the arguments is this waiter's alone. */
async function isWaiter(pid: number, directory: string): Promise<boolean> {
  const argv = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
  return argv.includes("turnbox-waiter") && argv.includes(directory);
}

async function readNumber(path: string): Promise<number | undefined> {
  const text = (await readFile(path, "utf8").catch(() => "")).trim();
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
