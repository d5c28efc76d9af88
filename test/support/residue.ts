import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { processesWith, run } from "./process.ts";

/** Everything on the machine that belongs to the sandboxes of a home, found by looking. */
export interface Residue {
  readonly datasets: readonly string[];
  readonly mounts: readonly string[];
  readonly containers: readonly string[];
  readonly cgroups: readonly string[];
  readonly netns: readonly string[];
  readonly processes: readonly string[];
}

/** What sessions of this home have left on the machine; templates and the pool itself are not residue. */
export async function findResidue(home: string): Promise<Residue> {
  const state = join(home, "hosts/local-1/containers");
  const containers = listed(state)
    .flatMap((name) => listed(join(state, name)).map((file) => `${name}/${file}`))
    .filter((file) => file.endsWith(".state"));
  const pools = (await run("zpool", ["list", "-H", "-o", "name"])).stdout
    .split("\n")
    .filter((name) => name.startsWith("tbx"));
  const datasets: string[] = [];
  for (const pool of pools) {
    const status = await run("zpool", ["status", pool]);
    if (!status.stdout.includes(home)) continue;
    const list = await run("zfs", ["list", "-H", "-r", "-o", "name", "-t", "filesystem,snapshot", `${pool}/sessions`]);
    datasets.push(...list.stdout.split("\n").filter((name) => name.startsWith(`${pool}/sessions/`)));
  }
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path.startsWith(`${home}/`));
  const ids = new Set(containers.map((file) => /\/([a-z0-9]+)_/.exec(file)?.[1] ?? ""));
  const cgroups = listed("/sys/fs/cgroup").flatMap((name) =>
    listed(join("/sys/fs/cgroup", name, "turnbox")).filter((entry) => ids.has(entry)),
  );
  return {
    datasets,
    mounts,
    containers,
    cgroups,
    netns: listed("/run/netns").filter((name) => name.startsWith("tbx")),
    processes: processesWith(home).filter((line) => line.includes("runsc")),
  };
}

function listed(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
