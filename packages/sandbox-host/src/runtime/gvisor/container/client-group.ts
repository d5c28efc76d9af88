import { access, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ContainerLimits } from "../../runtime.ts";
import { type CgroupMount, createCgroup, readCgroupMounts } from "./cgroup.ts";
import type { GvisorContext } from "../context.ts";
import { isLiveMember } from "./process-state.ts";

/**
 * The group of what stands on the host for the launched processes of a container: a shell that waits, and a `runsc exec`, for
 * each. It is beside the group of the sandbox, not in it: an idle sandbox is frozen, and what waits for it is not.
 */

/** Several times what was measured: a process has two shells, a `sleep` and a `runsc`, together 7 tasks and 3.5 MiB. */
const LIMITS_EACH = { memoryBytes: 16 * 1024 ** 2, pids: 32 };
const LIMITS_BESIDE = { memoryBytes: 64 * 1024 ** 2, pids: 64 };
const CPUS = 1;
/** A hierarchy with none of these bounds nothing; one of version 1 that has none may also refuse members. */
const BOUNDS = ["memory.limit_in_bytes", "memory.max", "cpu.cfs_quota_us", "cpu.max", "pids.max"];
const PATIENCE_MS = 2000;
const POLL_MS = 5;

/** What those who wait for so many processes may use together. */
export function clientLimits(processes: number): Required<ContainerLimits> {
  return {
    cpus: CPUS,
    memoryBytes: LIMITS_BESIDE.memoryBytes + processes * LIMITS_EACH.memoryBytes,
    pids: LIMITS_BESIDE.pids + processes * LIMITS_EACH.pids,
  };
}

function groupPath({ cgroupParent }: GvisorContext, id: string): string {
  return `${cgroupParent}/${id}-clients`;
}

/** Makes the group; returns its directories, which a process joins by writing itself into the `cgroup.procs` of each. */
export async function makeClientGroup(context: GvisorContext, id: string): Promise<readonly string[]> {
  const mounts = await boundingMounts(context);
  const path = groupPath(context, id);
  const directories = mounts.map(({ mountPoint }) => join(mountPoint, path));
  for (const directory of directories) await mkdir(directory, { recursive: true });
  await createCgroup(mounts, path).limit(clientLimits(context.maxSpawned));
  return directories;
}

/** The hierarchies in which the group above that of the sandbox has a bound, which it has since the sandbox was booted. */
async function boundingMounts({ cgroupParent }: GvisorContext): Promise<readonly CgroupMount[]> {
  const mounts = await readCgroupMounts();
  const kept = await Promise.all(
    mounts.map(async (mount) => {
      const files = BOUNDS.map((name) => join(mount.mountPoint, cgroupParent, name));
      return (await Promise.all(files.map(exists))).includes(true) ? [mount] : [];
    }),
  );
  return kept.flat();
}

/**
 * Takes the group away when the commands in it have ended. The shells that waited for them are about to end, and are killed if
 * they have not after two seconds; what one of them only passes time with is killed at once.
 */
export async function removeClientGroup(context: GvisorContext, id: string): Promise<void> {
  const { clock } = context;
  const path = groupPath(context, id);
  const group = createCgroup(await readCgroupMounts(), path);
  const untilMs = clock.monotonicMs() + PATIENCE_MS;
  while ((await group.remove()) === "busy" && clock.monotonicMs() < untilMs + PATIENCE_MS) {
    const isLate = clock.monotonicMs() > untilMs;
    for (const pid of await group.pids())
      if ((isLate || (await commandOf(pid)) === "sleep") && isLiveMember(pid, path)) kill(pid);
    await clock.sleep(POLL_MS);
  }
}

async function commandOf(pid: number): Promise<string> {
  return (await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "")).trim();
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended in the meantime.
  }
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
