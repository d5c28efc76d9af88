import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import type { Clock } from "@turnbox/core";
import type { Interrupts } from "../interrupts.ts";

export interface ForegroundSpec {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly interrupts: Interrupts;
  readonly clock: Clock;
  /** Given each piece of the child's stdout and stderr if they are not to be inherited. */
  readonly onOutput?: { readonly stdout: (bytes: Uint8Array) => void; readonly stderr: (bytes: Uint8Array) => void };
  /** Whether the parent of this program is gone; asked several times a second. */
  readonly parentGone?: () => boolean;
}

const PARENT_POLL_MS = 250;
/** How long a child whose parent has gone may take before it is asked again, and then before it is killed. */
const GRACE_MS = 30_000;
/** Of util-linux; replaces itself with the command, so that the pid stays the child's own. */
const PDEATH_TOOL = "/usr/bin/setpriv";

/**
 * Runs a child in the foreground and returns its exit code as a shell counts it. Signals go on to it, each time they
 * come: it leads a process group of its own, so a Ctrl-C at the terminal does not reach it twice. It is ended when the
 * parent of this program goes away, and, if the kernel can do that, when this program is killed.
 */
export async function runForeground(spec: ForegroundSpec): Promise<number> {
  const [command, ...args] = boundToThisProcess(spec.argv);
  const { onOutput, clock } = spec;
  const child = spawn(command, args, {
    env: { ...spec.env },
    detached: true,
    stdio: onOutput === undefined ? "inherit" : ["inherit", "pipe", "pipe"],
  });
  if (onOutput !== undefined) {
    child.stdout?.on("data", onOutput.stdout);
    child.stderr?.on("data", onOutput.stderr);
  }
  using _redirect = spec.interrupts.redirect((name) => {
    child.kill(name);
  });
  const ended = new AbortController();
  const { signal } = ended;
  const watch = endWithParent(child, spec.parentGone ?? createParentCheck(), { clock, signal });
  try {
    return await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once(onOutput === undefined ? "exit" : "close", (code: number | null, name: NodeJS.Signals | null) => {
        resolve(code ?? 128 + (name === null ? 0 : constants.signals[name]));
      });
    });
  } finally {
    ended.abort();
    await watch;
  }
}

/** True once this process has been given to another parent. A process that init started has none to lose. */
function createParentCheck(): () => boolean {
  const parent = process.ppid;
  return () => parent > 1 && process.ppid !== parent;
}

/** When the parent has gone: asks the child to end, asks again, and at last kills its whole group. */
async function endWithParent(
  child: ChildProcess,
  parentGone: () => boolean,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  try {
    while (!parentGone()) await clock.sleep(PARENT_POLL_MS, { signal });
    child.kill("SIGTERM");
    await clock.sleep(GRACE_MS, { signal });
    child.kill("SIGTERM");
    await clock.sleep(GRACE_MS, { signal });
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch (thrown) {
    if (!signal.aborted) throw thrown;
  }
}

function boundToThisProcess(argv: readonly [string, ...string[]]): readonly [string, ...string[]] {
  if (process.platform !== "linux" || !existsSync(PDEATH_TOOL)) return argv;
  return [PDEATH_TOOL, "--pdeathsig", "TERM", "--", ...argv];
}
