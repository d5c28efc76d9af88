import { readFile } from "node:fs/promises";

/** Linux shows times in hundredths of a second, whatever the kernel counts in. */
const TICK_MS = 10;
const KIB = 1024;

export interface ProcessUsage {
  readonly cpuMs: number;
  readonly memoryBytes: number;
}

/** What processes of this machine use together. One that has ended uses nothing. */
export async function readProcessUsage(pids: readonly number[]): Promise<ProcessUsage> {
  const all = await Promise.all(pids.map(readOne));
  return {
    cpuMs: all.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
    memoryBytes: all.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0),
  };
}

async function readOne(pid: number): Promise<ProcessUsage> {
  const [stat, status] = await Promise.all(
    ["stat", "status"].map((name) => readFile(`/proc/${String(pid)}/${name}`, "utf8").catch(() => "")),
  );
  return parseProcessUsage({ stat: stat ?? "", status: status ?? "" });
}

/** From `/proc/<pid>/stat` and `/proc/<pid>/status`. The name in brackets may hold anything: the last bracket ends it. */
export function parseProcessUsage({ stat, status }: { readonly stat: string; readonly status: string }): ProcessUsage {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(status) ?? [];
  return { cpuMs: Number.isFinite(ticks) ? ticks * TICK_MS : 0, memoryBytes: Number(kib ?? 0) * KIB };
}
