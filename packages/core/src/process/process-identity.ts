import { readFileSync } from "node:fs";

/** One incarnation of a pid. A reused pid has another start, and after a reboot the boot is another. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in clock ticks since the boot. */
  readonly startTicks: string;
  readonly bootId: string;
}

/** The identity of a process that lives; undefined for one that is gone or only waits to be reaped. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The command name is in parentheses and may itself hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, startTicks] = [fields[0], fields[19]];
  if (startTicks === undefined || state === "Z" || state === "X") return undefined;
  return { pid, startTicks, bootId: readText("/proc/sys/kernel/random/boot_id")?.trim() ?? "" };
}

/** Whether exactly this process still lives. */
export function isLiving(identity: ProcessIdentity): boolean {
  const now = identifyProcess(identity.pid);
  return now?.startTicks === identity.startTicks && now.bootId === identity.bootId;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
