import { readdir, readFile } from "node:fs/promises";
import { type Clock, type ProcessIdentity, SandboxError } from "@turnbox/core";

const POLL_MS = 5;
const DEADLINE_MS = 8000;
/** How long a tree that is killed anyway may take to stand still. */
const FREEZE_BEFORE_KILL_MS = 3000;

/** One `NAME=value` of the environment that only processes of ours carry. */
export type Marker = `TURNBOX_${string}=${string}`;

/** The processes of this machine that carry a marker, and their descendants. Nothing else is ever signalled. */
export interface HostTree {
  /** Finds what is there, and remembers it: its members may lose their parents later. */
  look(): Promise<readonly ProcessStat[]>;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Ends all of it, and settles when nothing of it is left, or with the signal's reason. */
  kill(signal?: AbortSignal): Promise<void>;
}

/** `leader`: a process that belongs to the tree whether or not it still carries the marker. */
export function createHostTree(marker: Marker, clock: Clock, leader?: ProcessIdentity): HostTree {
  const known = new Set<string>();
  if (leader !== undefined) known.add(nameOf({ pid: leader.pid, startTime: leader.startTicks }));

  const look = async (): Promise<readonly ProcessStat[]> => {
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    const all = (await Promise.all(pids.map(readProcess))).filter((process) => process !== undefined);
    const found = new Set<number>();
    for (const { stat, environment } of all) {
      if (environment.includes(marker) || known.has(nameOf(stat))) found.add(stat.pid);
    }
    for (let before = -1; before !== found.size; ) {
      before = found.size;
      for (const { stat } of all) if (found.has(stat.parentPid)) found.add(stat.pid);
    }
    const alive = all.map(({ stat }) => stat).filter((stat) => found.has(stat.pid) && !"ZX".includes(stat.state));
    for (const stat of alive) known.add(nameOf(stat));
    return alive;
  };

  /** Signals those that are not yet as they should be, until none is left: new ones may come while it looks. */
  const bring = async (
    signal: NodeJS.Signals,
    isDone: (process: ProcessStat) => boolean,
    { patienceMs, caller }: { readonly patienceMs: number; readonly caller?: AbortSignal } = {
      patienceMs: DEADLINE_MS,
    },
  ): Promise<void> => {
    const deadlineMs = clock.monotonicMs() + patienceMs;
    for (;;) {
      const rest = (await look()).filter((process) => !isDone(process));
      if (rest.length === 0) return;
      if (clock.monotonicMs() > deadlineMs) {
        throw new SandboxError("RUNTIME_UNAVAILABLE", `processes do not take ${signal}`, { admitted: "unknown" });
      }
      for (const { pid } of rest) send(pid, signal);
      await clock.sleep(POLL_MS, caller === undefined ? {} : { signal: caller });
    }
  };

  const isFrozen = ({ state }: ProcessStat): boolean => state === "T";
  return {
    look,
    freeze: async () => {
      await bring("SIGSTOP", isFrozen);
    },
    thaw: async () => {
      await bring("SIGCONT", ({ state }) => state !== "T");
    },
    kill: async (signal) => {
      const caller = signal === undefined ? {} : { caller: signal };
      // Frozen first, so that no child escapes between look and kill.
      await bring("SIGSTOP", isFrozen, { patienceMs: FREEZE_BEFORE_KILL_MS, ...caller }).catch(() => {
        signal?.throwIfAborted();
      });
      await bring("SIGKILL", () => false, { patienceMs: DEADLINE_MS, ...caller });
    },
  };
}

function nameOf({ pid, startTime }: Pick<ProcessStat, "pid" | "startTime">): string {
  return `${String(pid)}:${startTime}`;
}

async function readProcess(
  pid: string,
): Promise<{ readonly stat: ProcessStat; readonly environment: readonly string[] } | undefined> {
  try {
    const [stat, environment] = await Promise.all([
      readFile(`/proc/${pid}/stat`, "utf8"),
      readFile(`/proc/${pid}/environ`, "utf8"),
    ]);
    const parsed = parseStat(stat);
    return parsed === undefined ? undefined : { stat: parsed, environment: environment.split("\0") };
  } catch {
    // It has ended, or is not ours to look at.
    return undefined;
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended in the meantime.
  }
}

/** A line of `/proc/<pid>/stat`, as far as it matters here. */
interface ProcessStat {
  readonly pid: number;
  readonly state: string;
  readonly parentPid: number;
  /** Together with the pid, this names one process only; pids alone are used again. */
  readonly startTime: string;
}

/** The name in brackets may hold anything, also brackets and line breaks: the last bracket ends it. */
function parseStat(line: string): ProcessStat | undefined {
  const [, pid, rest] = /^(\d+) \(.*\) (.*)$/s.exec(line.trimEnd()) ?? [];
  const fields = rest?.split(" ") ?? [];
  const [state, parentPid] = fields;
  const startTime = fields[19];
  if (pid === undefined || state === undefined || parentPid === undefined || startTime === undefined) return undefined;
  return { pid: Number(pid), state, parentPid: Number(parentPid), startTime };
}
