import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type CommandRunner, createChildCommandRunner, type RunSpec } from "@turnbox/core";

/** The directory in which zfs-fuse keeps what there is one of per machine. */
const DAEMON_DIRECTORIES = ["/var/run/zfs", "/var/lock/zfs", "/var/lib/zfs"];

/**
 * A corner of the machine in which zfs-fuse may be killed: a mount namespace with a socket, lock and cache directory of
 * its own. Commands of `runner` run in it; the machine's own daemon and its pools are not seen from there.
 */
export interface PrivateCorner extends AsyncDisposable {
  readonly home: string;
  readonly runner: CommandRunner;
  /** The mount table of the corner. */
  readonly mountTablePath: string;
  /** A path of the corner as this process reaches it. */
  seen(path: string): string;
  /** Kills the corner's daemon as a crash would, and waits until it is gone. */
  killDaemon(): Promise<void>;
  signalDaemon(signal: "SIGSTOP" | "SIGCONT"): Promise<void>;
  /** Ends the connection between the kernel and the daemon for one mount, which both outlive. */
  abortMount(path: string): Promise<void>;
  /** How many daemons run in the corner. */
  countDaemons(): Promise<number>;
}

export async function createPrivateCorner(): Promise<PrivateCorner> {
  const home = await realpath(await mkdtemp(join(tmpdir(), "turnbox-corner-")));
  const runner = createChildCommandRunner();
  const script = ["mount --make-rprivate /"];
  for (const directory of DAEMON_DIRECTORIES) script.push(`mkdir -p ${directory}`, `mount -t tmpfs tmpfs ${directory}`);
  script.push("echo ready", "exec sleep 600");
  const holder: ChildProcess = spawn("unshare", ["--mount", "sh", "-ec", script.join("\n")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (holder.stdout === null || holder.pid === undefined) throw new Error("unshare cannot be started");
  await once(holder.stdout, "data");
  const pid = String(holder.pid);
  const inside = <T extends Pick<RunSpec, "command" | "args">>(spec: T): T => ({
    ...spec,
    command: "nsenter",
    args: ["--target", pid, "--mount", "--", spec.command, ...spec.args],
  });
  const insideRunner: CommandRunner = {
    run: (spec, options) => runner.run(inside(spec), options),
    start: (spec, options) => runner.start(inside(spec), options),
  };
  const daemons = async (): Promise<readonly number[]> => {
    const { stdout } = await runner.run({
      command: "pgrep",
      args: ["-x", "zfs-fuse", "--ns", pid, "--nslist", "mnt"],
      deadlineMs: 5000,
    });
    return stdout
      .split("\n")
      .filter((line) => line !== "")
      .map(Number);
  };
  const killDaemon = async (): Promise<void> => {
    for (const daemon of await daemons()) process.kill(daemon, "SIGKILL");
    for (let triesLeft = 100; (await daemons()).length > 0; triesLeft -= 1) {
      if (triesLeft === 0) throw new Error("the corner's daemon does not die");
      await delay(50);
    }
  };
  return {
    home,
    runner: insideRunner,
    mountTablePath: `/proc/${pid}/mountinfo`,
    seen: (path) => `/proc/${pid}/root${path}`,
    killDaemon,
    signalDaemon: async (signal) => {
      for (const daemon of await daemons()) process.kill(daemon, signal);
    },
    abortMount: async (path) => {
      const script =
        'mount -t fusectl fusectl /mnt; echo 1 > "/mnt/$(mountpoint -d "$0" | cut -d : -f 2)/abort"; umount /mnt';
      await insideRunner.run({ command: "sh", args: ["-ec", script, path], deadlineMs: 5000 });
    },
    countDaemons: async () => (await daemons()).length,
    [Symbol.asyncDispose]: async () => {
      await killDaemon();
      holder.kill("SIGKILL");
      await once(holder, "exit");
      await rm(home, { recursive: true, force: true });
    },
  };
}
