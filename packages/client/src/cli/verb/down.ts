import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { SandboxError } from "@turnbox/core";
import { hostsPath, type ServerRecord } from "../../home.ts";
import { parseDuration } from "../format/duration.ts";
import type { Invocation } from "../invocation.ts";
import { type OutputOptions, withExamples, withOutputOption } from "../option.ts";
import { requireHostProgram } from "../service/host-program.ts";
import { findRunningServer } from "../service/running-server.ts";

const POLL_MS = 100;
const END_ALL_MS = 120_000;

interface DownOptions extends OutputOptions {
  readonly all?: boolean;
  readonly timeout: string;
}

export function registerDown(program: Command, invocation: Invocation): void {
  withExamples(
    withOutputOption(program.command("down"))
      .summary("stop the server of TURNBOX_HOME")
      .description(
        "Stop the server of TURNBOX_HOME and wait until it has ended. Sandboxes are frozen, not destroyed: the next `up` " +
          "finds them as they were.",
      )
      .option("--all", "also end the frozen sandboxes, which stay in memory otherwise (files are kept)")
      .option("--timeout <duration>", "how long to wait for the server's end", "60s"),
    [
      ["turnbox down", "stop, keep sandboxes frozen in memory"],
      ["turnbox down --all", "stop, and free their memory"],
    ],
  ).action(async (options: DownOptions) => {
    const { home } = invocation.surroundings.environment;
    const output = invocation.output(options);
    const running = await findRunningServer(home, invocation.surroundings.clock);
    if (running !== undefined)
      await stop(running, { home, timeoutMs: parseDuration(options.timeout, "timeout") }, invocation);
    const endedHosts = options.all === true ? await endFrozenSandboxes(home, invocation) : [];
    const said = running === undefined ? `no server runs on ${home}` : `stopped process ${String(running.pid)}`;
    await output.result({
      json: {
        home,
        stopped: running !== undefined,
        ...(running === undefined ? {} : { pid: running.pid }),
        endedHosts,
      },
      text: `${said}${options.all === true ? "; ended its frozen sandboxes" : ""}\n`,
    });
  });
}

/** Asks the server to end and waits for it. */
export async function stop(
  running: ServerRecord,
  { home, timeoutMs }: { readonly home: string; readonly timeoutMs: number },
  { surroundings: { clock }, signal }: Invocation,
): Promise<void> {
  try {
    process.kill(running.pid, "SIGTERM");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ESRCH") return;
    throw new SandboxError("PERMISSION_DENIED", `process ${String(running.pid)} belongs to another user`, { cause });
  }
  const deadlineMs = clock.monotonicMs() + timeoutMs;
  while ((await findRunningServer(home, clock))?.pid === running.pid) {
    if (clock.monotonicMs() > deadlineMs) {
      throw new SandboxError(
        "DEADLINE_EXCEEDED",
        `process ${String(running.pid)} has not ended within ${String(timeoutMs / 1000)} s`,
        {
          metadata: { pid: String(running.pid) },
        },
      );
    }
    await clock.sleep(POLL_MS, { signal });
  }
}

async function endFrozenSandboxes(home: string, { surroundings, signal }: Invocation): Promise<readonly string[]> {
  const hosts = await listHostHomes(home);
  for (const host of hosts) {
    const args = ["end-all", "--home", host];
    await requireHostProgram(surroundings, { args, deadlineMs: END_ALL_MS }, { signal });
  }
  return hosts;
}

/** The homes of the sandbox-hosts that this home's server has started. */
export async function listHostHomes(home: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(hostsPath(home), { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => join(hostsPath(home), entry.name));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw cause;
  }
}
