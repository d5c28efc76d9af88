import { readFile } from "node:fs/promises";
import { isMember } from "./cgroup.ts";

/** The state letter of a `/proc/<pid>/stat` line; the name before it may hold anything, spaces and brackets included. */
export function parseStatState(stat: string): string | undefined {
  return /^.*\) (\S)/s.exec(stat)?.[1];
}

/**
 * Whether a process runs and belongs to the cgroup. Pids are used again, so a pid alone proves nothing; membership in the
 * container's own cgroup does. A zombie has ended, whatever `kill(pid, 0)` says of it.
 */
export async function isLiveMember(pid: number, cgroupPath: string): Promise<boolean> {
  if (pid <= 1) return false;
  try {
    const [stat, cgroups] = await Promise.all([
      readFile(`/proc/${String(pid)}/stat`, "utf8"),
      readFile(`/proc/${String(pid)}/cgroup`, "utf8"),
    ]);
    const state = parseStatState(stat);
    return state !== undefined && state !== "Z" && state !== "X" && isMember(cgroups, cgroupPath);
  } catch {
    return false;
  }
}
