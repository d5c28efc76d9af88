import { createHash } from "node:crypto";
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

/** The pool of a home; undefined where none is imported. */
export async function findPool(home: string): Promise<string | undefined> {
  const { stdout } = await run("zpool", ["list", "-H", "-o", "name"]);
  for (const pool of stdout.split("\n").filter((name) => name.startsWith("tbx"))) {
    if ((await run("zpool", ["status", pool])).stdout.includes(home)) return pool;
  }
  return undefined;
}

/**
 * What sessions of this home have left on the machine; templates, the pool itself and a sandbox that stands by for the
 * next one are not residue. Cgroups are looked
 * for by the ids of containers: those that still have a state, and those that are named.
 */
export async function findResidue(home: string, containerIds: readonly string[] = []): Promise<Residue> {
  const state = join(home, "hosts/local-1/containers");
  const spares = listed(join(state, "spares"));
  const isOfSpare = (text: string): boolean => spares.some((id) => text.includes(id));
  const containers = listed(state)
    .flatMap((name) => listed(join(state, name)).map((file) => `${name}/${file}`))
    .filter((file) => file.endsWith(".state") && !isOfSpare(file));
  const pool = await findPool(home);
  const list = ["list", "-H", "-r", "-o", "name", "-t", "filesystem,snapshot"];
  const datasets =
    pool === undefined
      ? []
      : (await run("zfs", [...list, `${pool}/sessions`, `${pool}/journals`])).stdout
          .split("\n")
          .filter((name) => /^[^/]+\/(sessions|journals)\//.test(name));
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path.startsWith(`${home}/`));
  const ids = new Set([...containerIds, ...containers.map((file) => /\/([a-z0-9]+)_/.exec(file)?.[1] ?? "")]);
  const cgroups = listed("/sys/fs/cgroup").flatMap((name) =>
    listed(join("/sys/fs/cgroup", name, "turnbox")).filter((entry) => ids.has(entry.replace(/-clients$/, ""))),
  );
  // Namespaces carry the key of the host that made them: other hosts of the machine have theirs.
  const networkKey = createHash("sha256").update(join(home, "hosts/local-1")).digest("hex").slice(0, 8);
  return {
    datasets,
    mounts,
    containers,
    cgroups,
    netns: listed("/run/netns").filter((name) => name.startsWith(`tbx-${networkKey}`)),
    processes: processesWith(home).filter((line) => line.includes("runsc") && !isOfSpare(line)),
  };
}

function listed(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
