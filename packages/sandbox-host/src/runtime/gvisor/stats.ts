import { SandboxError } from "@turnbox/core";
import { readProcessUsage } from "../process-usage.ts";
import type { ContainerStats } from "../runtime.ts";
import { cgroupOf, type GvisorContext } from "./context.ts";
import { askSandbox } from "./liveness.ts";

/** PID 1 and its sleep, which it starts again at once when somebody kills it. */
const RESIDENT_PROCESSES = 2;

interface Question {
  /** How many of the processes inside are shells of the runtime's own that wait for a call. */
  readonly waiting: number;
  readonly signal: AbortSignal;
}

/** How many processes there are inside besides the resident ones. */
export async function countProcesses(
  context: GvisorContext,
  id: string,
  { waiting, signal }: Question,
): Promise<number> {
  const answer = await askSandbox(context, id, signal);
  if (answer === undefined) throw new SandboxError("SANDBOX_LOST", `container ${id} does not run`, { admitted: "no" });
  return Math.max(0, answer.pids.length - RESIDENT_PROCESSES - waiting);
}

/**
 * What the sandbox uses on the host, sentry and gofer included: by its cgroup, and by its processes where a hierarchy that
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
