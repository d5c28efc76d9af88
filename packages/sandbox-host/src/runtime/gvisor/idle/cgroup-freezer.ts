import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CgroupMount, parseCgroupMounts } from "../container/cgroup.ts";

/**
 * Takes the processor away from the processes of a group, and gives it back. It is the freezer of cgroup version 2, in
 * which a frozen process can still be killed; that of version 1 keeps it until it is thawed.
 */
export interface CgroupFreezer {
  /** Freezes these processes, which are all of the group's. It is synchronous: nothing comes between a look and it. */
  freeze(path: string, pids: readonly number[]): void;
  /** Does nothing if it is not frozen, or not there. */
  thaw(path: string): void;
}

/** Undefined if there is no hierarchy of version 2, not even one beside those of version 1. */
export function createCgroupFreezer(mounts: readonly CgroupMount[]): CgroupFreezer | undefined {
  const unified = mounts.find(({ version }) => version === 2);
  if (unified === undefined) return undefined;
  const directoryOf = (path: string): string => join(unified.mountPoint, path);
  return {
    freeze: (path, pids) => {
      const directory = directoryOf(path);
      // If the bounds are of version 1, the processes are in no group of version 2 yet.
      mkdirSync(directory, { recursive: true });
      const members = new Set(readFileSync(join(directory, "cgroup.procs"), "utf8").split("\n"));
      for (const pid of pids) if (!members.has(String(pid))) enroll(directory, pid);
      writeFileSync(join(directory, "cgroup.freeze"), "1");
    },
    thaw: (path) => {
      try {
        writeFileSync(join(directoryOf(path), "cgroup.freeze"), "0", { flag: "r+" });
      } catch {
        // It was never frozen, or is gone.
      }
    },
  };
}

/** That of this machine. */
export function openCgroupFreezer(): CgroupFreezer | undefined {
  try {
    return createCgroupFreezer(parseCgroupMounts(readFileSync("/proc/self/mountinfo", "utf8")));
  } catch {
    return undefined;
  }
}

/** A process that has ended meanwhile needs no freeze. */
function enroll(directory: string, pid: number): void {
  try {
    writeFileSync(join(directory, "cgroup.procs"), String(pid));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
