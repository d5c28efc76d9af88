import { readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ContainerLimits } from "../../runtime.ts";

/** A mounted cgroup hierarchy: several for version 1 (one per controller), one for version 2. */
export interface CgroupMount {
  readonly version: 1 | 2;
  readonly mountPoint: string;
}

/** Reads the hierarchies from `/proc/self/mountinfo`. */
export function parseCgroupMounts(mountInfo: string): readonly CgroupMount[] {
  const mounts: CgroupMount[] = [];
  for (const line of mountInfo.split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const mountPoint = before
      .split(" ")[4]
      ?.replaceAll(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
    const type = after.split(" ")[0];
    if (mountPoint === undefined) continue;
    if (type === "cgroup") mounts.push({ version: 1, mountPoint });
    if (type === "cgroup2") mounts.push({ version: 2, mountPoint });
  }
  return mounts;
}

export async function readCgroupMounts(): Promise<readonly CgroupMount[]> {
  return parseCgroupMounts(await readFile("/proc/self/mountinfo", "utf8"));
}

/** Whether a process, by its `/proc/<pid>/cgroup`, is in the group `path` of any hierarchy. A zombie is in none. */
export function isMember(processCgroups: string, path: string): boolean {
  return processCgroups.split("\n").some((line) => line.split(":").slice(2).join(":").endsWith(path));
}

/** How often the kernel killed for want of memory: `memory.oom_control` in version 1, `memory.events` in version 2. */
export function parseOomKills(text: string): number {
  const [, count] = /^oom_kill (\d+)$/m.exec(text) ?? [];
  return Number(count ?? 0);
}

/** Processor time in milliseconds: `cpuacct.usage` in version 1, `cpu.stat` in version 2. */
export function parseCpuMs(files: { readonly cpuacctUsage: string; readonly cpuStat: string }): number | undefined {
  if (/^\d+\s*$/.test(files.cpuacctUsage)) return Number(files.cpuacctUsage) / 1e6;
  const [, usec] = /^usage_usec (\d+)$/m.exec(files.cpuStat) ?? [];
  return usec === undefined ? undefined : Number(usec) / 1000;
}

/** Memory in use: `memory.usage_in_bytes` or `memory.current`, without the file cache that the kernel takes back at need. */
export function parseMemoryBytes(files: { readonly usage: string; readonly stat: string }): number | undefined {
  if (!/^\d+\s*$/.test(files.usage)) return undefined;
  const [, cache] = /^total_inactive_file (\d+)$/m.exec(files.stat) ?? /^inactive_file (\d+)$/m.exec(files.stat) ?? [];
  return Math.max(0, Number(files.usage) - Number(cache ?? 0));
}

/** What a group uses, as far as its hierarchies count it. */
export interface CgroupUsage {
  readonly cpuMs: number | undefined;
  readonly memoryBytes: number | undefined;
}

/** One group, in all hierarchies that have it. */
export interface Cgroup {
  pids(): Promise<readonly number[]>;
  oomKills(): Promise<number>;
  usage(): Promise<CgroupUsage>;
  /** Sets each bound in the hierarchies that know it; what is absent is without a bound. */
  limit(limits: ContainerLimits): Promise<void>;
  /** Removes it if nothing is left in it; returns whether it is gone everywhere. */
  remove(): Promise<"removed" | "busy">;
}

export function createCgroup(mounts: readonly CgroupMount[], path: string): Cgroup {
  const directories = mounts.map(({ mountPoint }) => join(mountPoint, path));

  const readAll = async (name: string): Promise<readonly string[]> =>
    await Promise.all(directories.map((directory) => readFile(join(directory, name), "utf8").catch(() => "")));

  return {
    pids: async () => {
      const lists = await readAll("cgroup.procs");
      return [
        ...new Set(
          lists.flatMap((list) =>
            list
              .split("\n")
              .filter((line) => line !== "")
              .map(Number),
          ),
        ),
      ];
    },
    oomKills: async () => {
      const texts = [...(await readAll("memory.oom_control")), ...(await readAll("memory.events"))];
      return Math.max(0, ...texts.map(parseOomKills));
    },
    usage: async () => {
      const read = async (name: string): Promise<string> => (await readAll(name)).find((text) => text !== "") ?? "";
      const [cpuacctUsage, cpuStat, v1, v2, stat] = await Promise.all([
        read("cpuacct.usage"),
        readAll("cpu.stat"),
        read("memory.usage_in_bytes"),
        read("memory.current"),
        read("memory.stat"),
      ]);
      return {
        cpuMs: parseCpuMs({ cpuacctUsage, cpuStat: cpuStat.join("") }),
        memoryBytes: parseMemoryBytes({ usage: v1 === "" ? v2 : v1, stat }),
      };
    },
    limit: async (limits) => {
      const files = limitFiles(limits);
      await Promise.all(
        directories.flatMap((directory) => files.map(([name, value]) => writeIfThere(join(directory, name), value))),
      );
    },
    remove: async () => {
      const results = await Promise.all(directories.map(removeDirectory));
      return results.includes("busy") ? "busy" : "removed";
    },
  };
}

const CPU_PERIOD_US = 100_000;

/** The files that bounds are written to, with the names of both versions; a hierarchy has those of its own. */
export function limitFiles({ cpus, memoryBytes, pids }: ContainerLimits): readonly (readonly [string, string])[] {
  const quotaUs = cpus === undefined ? undefined : Math.max(1000, Math.round(cpus * CPU_PERIOD_US));
  return [
    ["cpu.cfs_period_us", String(CPU_PERIOD_US)],
    ["cpu.cfs_quota_us", String(quotaUs ?? -1)],
    ["cpu.max", `${quotaUs ?? "max"} ${CPU_PERIOD_US}`],
    ["memory.limit_in_bytes", String(memoryBytes ?? -1)],
    ["memory.max", String(memoryBytes ?? "max")],
    ["pids.max", String(pids ?? "max")],
  ];
}

/** The file is never made: a hierarchy without this controller has none. */
async function writeIfThere(path: string, value: string): Promise<void> {
  await writeFile(path, value, { flag: "r+" }).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
  });
}

async function removeDirectory(directory: string): Promise<"removed" | "busy"> {
  try {
    await rmdir(directory);
    return "removed";
  } catch (error) {
    return codeOf(error) === "ENOENT" ? "removed" : "busy";
  }
}

function codeOf(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}
