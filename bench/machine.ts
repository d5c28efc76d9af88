import { availableParallelism, cpus, loadavg, release, totalmem } from "node:os";
import { command } from "./run/command.ts";

/** Above this the figures are of little use. */
export const QUIET_LOAD = 0.5;

/** Where and when something was measured. */
export interface Machine {
  readonly at: string;
  readonly cores: number;
  readonly processor: string;
  readonly memoryGib: number;
  readonly kernel: string;
  readonly loadAverage: number;
  readonly node: string;
  readonly runsc: string;
  readonly zfs: string;
}

/** A part of the machine is missing without which nothing can be measured. */
export class MissingPart extends Error {}

export async function describeMachine(): Promise<Machine> {
  return {
    at: new Date().toISOString(),
    cores: availableParallelism(),
    processor: cpus()[0]?.model.trim() ?? "",
    memoryGib: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    loadAverage: loadavg()[0] ?? 0,
    node: process.version,
    runsc: (await versionOf("runsc", ["--version"])).replace("runsc version ", ""),
    zfs: await zfsVersion(),
  };
}

async function versionOf(program: string, args: readonly string[]): Promise<string> {
  try {
    return (await command(program, args)).split("\n")[0] ?? "";
  } catch (cause) {
    throw new MissingPart(`${program} cannot be run: see npm start, which installs what is missing`, { cause });
  }
}

/** Only OpenZFS has a version of its own to tell. The daemon of zfs-fuse need not run yet: a host starts it. */
async function zfsVersion(): Promise<string> {
  const own = await versionOf("zfs", ["version"]).catch(() => undefined);
  return own ?? (await versionOf("dpkg-query", ["-W", "-f", "zfs-fuse ${Version}", "zfs-fuse"]));
}

export function describeInLines(machine: Machine): readonly string[] {
  return [
    `machine: ${machine.cores} cores (${machine.processor}), ${machine.memoryGib} GiB, kernel ${machine.kernel}`,
    `parts: node ${machine.node}, runsc ${machine.runsc}, ${machine.zfs}`,
    `begun at ${machine.at} with a load average of ${machine.loadAverage.toFixed(2)}`,
  ];
}
