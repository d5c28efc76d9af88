import { readFile } from "node:fs/promises";
import { identifyProcess } from "@turnbox/core";
import { isMember } from "./cgroup.ts";

/**
 * Whether a process runs and belongs to the cgroup. Pids are used again, so a pid alone proves nothing; membership in the
 * container's own cgroup does. A zombie has ended, whatever `kill(pid, 0)` says of it.
 */
export async function isLiveMember(pid: number, cgroupPath: string): Promise<boolean> {
  if (pid <= 1 || identifyProcess(pid) === undefined) return false;
  const cgroups = await readFile(`/proc/${String(pid)}/cgroup`, "utf8").catch(() => "");
  return isMember(cgroups, cgroupPath);
}
