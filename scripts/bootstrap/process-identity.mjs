import { readFileSync } from "node:fs";

/** Parent and start time of a process from /proc, or undefined where that is not known (gone, or not Linux). */
export function readProcess(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command name is in parentheses and may itself hold spaces and parentheses.
    const name = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { name, state: fields[0], parentPid: Number(fields[1]), startTicks: fields[19] };
  } catch {
    return undefined;
  }
}

/** Names one incarnation of a pid, so that a reused pid is not taken for the same process. */
export function identify(pid) {
  return `${pid} ${readProcess(pid)?.startTicks ?? "-"}`;
}

/** Whether the process that `identify` named still runs. */
export function isAlive(identity) {
  const [pid, startTicks] = identity.split(" ");
  try {
    process.kill(Number(pid), 0);
  } catch (cause) {
    if (cause.code !== "EPERM") return false;
  }
  const now = readProcess(pid);
  return now === undefined || (now.startTicks === startTicks && now.state !== "Z");
}
