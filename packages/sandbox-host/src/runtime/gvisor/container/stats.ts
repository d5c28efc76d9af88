import { readProcessUsage } from "../../process-usage.ts";
import type { ContainerStats } from "../../runtime.ts";
import { cgroupOf, type GvisorContext, lost } from "../context.ts";
import { askSandbox } from "./liveness.ts";

/** PID 1 and its sleep, which it starts again at once when it is killed. */
const RESIDENT_PROCESSES = 2;

/** The shells of the runtime's own that wait for calls. */
export interface OwnShells {
  /** Settles when none is being made; the pids of those that wait. */
  settled(id: string): Promise<ReadonlySet<number>>;
  isMaking(id: string): boolean;
}

interface Question {
  readonly slots: OwnShells;
  readonly signal: AbortSignal;
}

/** How many processes there are inside besides the resident ones. */
export async function countProcesses(context: GvisorContext, id: string, { slots, signal }: Question): Promise<number> {
  for (;;) {
    const own = new Set(await slots.settled(id));
    const answer = await askSandbox(context, id, signal);
    if (answer === undefined) throw lost(id);
    // One that came to be meanwhile may be among them without a known pid.
    if (slots.isMaking(id)) continue;
    for (const pid of await slots.settled(id)) own.add(pid);
    return Math.max(0, answer.pids.filter((pid) => !own.has(pid)).length - RESIDENT_PROCESSES);
  }
}

/**
 * What the sandbox uses on the host, sentry and gofer included: by its cgroup, and by its processes if a hierarchy that
 * counts is missing.
 */
export async function readStats(context: GvisorContext, id: string, question: Question): Promise<ContainerStats> {
  const cgroup = await cgroupOf(context, id);
  const [processes, usage] = await Promise.all([countProcesses(context, id, question), cgroup.usage()]);
  const { cpuMs, memoryBytes } = usage;
  if (cpuMs !== undefined && memoryBytes !== undefined) return { cpuMs, memoryBytes, processes };
  const counted = await readProcessUsage(await cgroup.pids());
  return { cpuMs: cpuMs ?? counted.cpuMs, memoryBytes: memoryBytes ?? counted.memoryBytes, processes };
}
