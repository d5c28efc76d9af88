import { readFileSync } from "node:fs";
import { identifyProcess } from "@turnbox/core";
import { isMember } from "./cgroup.ts";

/**
 * Whether a process runs and belongs to the cgroup. Pids are used again, so a pid alone proves nothing; membership in the
 * container's own cgroup does. A zombie has ended, whatever `kill(pid, 0)` says of it.
 */
export function isLiveMember(pid: number, cgroupPath: string): boolean {
  if (pid <= 1 || identifyProcess(pid) === undefined) return false;
  return isMember(readCgroups(pid), cgroupPath);
}

/** Nothing for a process that has just gone. */
function readCgroups(pid: number): string {
  try {
    return readFileSync(`/proc/${String(pid)}/cgroup`, "utf8");
  } catch {
    return "";
  }
}
