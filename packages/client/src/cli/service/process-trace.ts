import { readFile } from "node:fs/promises";

/** What /proc says about a process. */
export interface ProcessTrace {
  readonly pid: number;
  readonly argv: readonly string[];
  /** Wall time of its start, reckoned from this process's own. */
  readonly startedAtMs: number;
}

/** Ticks of /proc times; the kernel's USER_HZ is 100 on every architecture that Node runs on. */
const TICK_MS = 10;

/** The process of this pid, or undefined where there is none (a zombie counts as none) or no /proc. */
export async function readProcessTrace(pid: number, nowMs: number): Promise<ProcessTrace | undefined> {
  const theirs = await readStat(String(pid));
  const own = await readStat("self");
  if (theirs === undefined || own === undefined || theirs.state === "Z") return undefined;
  const commandLine = await readProc(`/proc/${String(pid)}/cmdline`);
  if (commandLine === undefined) return undefined;
  const ownStartedAtMs = nowMs - process.uptime() * 1000;
  return {
    pid,
    argv: commandLine.split("\0").filter((word) => word !== ""),
    startedAtMs: ownStartedAtMs + (theirs.startTicks - own.startTicks) * TICK_MS,
  };
}

async function readStat(pid: string): Promise<{ readonly state: string; readonly startTicks: number } | undefined> {
  const stat = await readProc(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The command name is in parentheses and may itself hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0] ?? "", startTicks: Number(fields[19]) };
}

async function readProc(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch {
    return undefined;
  }
}
