import type { Command } from "commander";
import { findHosts, listHostHomes, readLockHolder, serverLockPath } from "@turnbox/client/internal";
import { parseDuration } from "../format/duration.ts";
import type { Invocation } from "../invocation.ts";
import { type OutputOptions, withExamples, withOutputOption } from "../option.ts";
import { whileWorking } from "../progress/while-working.ts";
import { endProcess } from "../service/end-process.ts";
import { requireHostProgram } from "../service/host-program.ts";

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
        "Stop the server of TURNBOX_HOME, be it ready or not, and wait until it and its hosts have ended. Sandboxes are " +
          "frozen, not destroyed: the next `up` finds them as they were.",
      )
      .option("--all", "also end the frozen sandboxes, which stay in memory otherwise (files are kept)")
      .option("--timeout <duration>", "how long to wait for the server's end", "60s"),
    [
      ["turnbox down", "stop, keep sandboxes frozen in memory"],
      ["turnbox down --all", "stop, and free their memory"],
    ],
  ).action(async (options: DownOptions) => {
    const { home } = invocation.surroundings.environment;
    const timeoutMs = parseDuration(options.timeout, "timeout");
    const { pid, hostPids, endedHosts } = await whileWorking(
      {
        text: "stopping the server",
        options,
        work: async (spinner) => {
          const stopped = await stop(home, timeoutMs, invocation);
          if (options.all !== true) return { ...stopped, endedHosts: [] };
          spinner.say("ending the frozen sandboxes");
          return { ...stopped, endedHosts: await endFrozenSandboxes(home, invocation) };
        },
      },
      invocation,
    );
    const pids = [...(pid === undefined ? [] : [pid]), ...hostPids];
    const said = pids.length === 0 ? `no server runs on ${home}` : `stopped process ${pids.join(", ")}`;
    await invocation.output(options).result({
      json: { home, stopped: pids.length > 0, ...(pid === undefined ? {} : { pid }), hostPids, endedHosts },
      text: `${said}${options.all === true ? "; ended its frozen sandboxes" : ""}\n`,
    });
  });
}

interface Stopped {
  /** Of the server. */
  readonly pid?: number;
  /** Of hosts that their server had left behind. */
  readonly hostPids: readonly number[];
}

/** Ends what holds the home: the server, which ends its hosts, and then hosts without an owner. */
async function stop(
  home: string,
  timeoutMs: number,
  { surroundings: { clock }, signal }: Invocation,
): Promise<Stopped> {
  const options = { deadlineMs: clock.monotonicMs() + timeoutMs, clock, signal };
  const server = readLockHolder(serverLockPath(home));
  if (server !== undefined) await endProcess(server, options);
  const hosts = await findHosts(home);
  await Promise.all(hosts.map((host) => endProcess(host, options)));
  return { ...(server === undefined ? {} : { pid: server.pid }), hostPids: hosts.map(({ pid }) => pid) };
}

async function endFrozenSandboxes(home: string, { surroundings, signal }: Invocation): Promise<readonly string[]> {
  const hosts = await listHostHomes(home);
  for (const host of hosts) {
    const args = ["end-all", "--home", host];
    await requireHostProgram(surroundings, { args, deadlineMs: END_ALL_MS }, { signal });
  }
  return hosts;
}
