import { type Clock, isLiving, SandboxError } from "@turnbox/core";
import { readServerRecord, type ServerRecord } from "../../home.ts";
import { type ProcessTrace, readProcessTrace } from "./process-trace.ts";

/** Clocks and file times are not exact. */
const START_TOLERANCE_MS = 2000;

/**
 * The server that runs on this home, or undefined. A record whose pid is gone, or belongs to somebody else by now, is
 * stale: it says nothing and its pid is never signalled.
 */
export async function findRunningServer(home: string, clock: Clock): Promise<ServerRecord | undefined> {
  const record = await readServerRecord(home);
  if (record === undefined || !isAlive(record.pid)) return undefined;
  if (process.platform !== "linux") {
    const message = `cannot tell here whether process ${String(record.pid)} is the server of ${home}; end it by hand`;
    throw new SandboxError("HOME_IN_USE", message, { metadata: { home, pid: String(record.pid) } });
  }
  if (record.identity !== undefined) return isLiving(record.identity) ? record : undefined;
  // Without a trace it has ended since, or is a zombie whose parent has yet to collect it.
  const trace = await readProcessTrace(record.pid, clock.nowMs());
  return trace !== undefined && isServerOf(trace, { home, record }) ? record : undefined;
}

/**
 * Whether a process is the server that wrote the record: its arguments name the orchestrator and this home, or it bears
 * the name of Turnbox and is older than the record.
 */
export function isServerOf(
  { argv, startedAtMs }: ProcessTrace,
  { home, record }: { readonly home: string; readonly record: ServerRecord },
): boolean {
  const isOrchestrator = argv.some((word) => word.includes("turnbox-orchestrator"));
  if (isOrchestrator && argv.includes(home)) return true;
  const bearsName = isOrchestrator || argv.some((word) => word.startsWith("turnbox"));
  return bearsName && startedAtMs <= record.writtenAtMs + START_TOLERANCE_MS;
}

/** Whether a process of this pid exists, a zombie included. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === "EPERM";
  }
}
