import { readFile } from "node:fs/promises";
import { cpus, loadavg, totalmem } from "node:os";
import type { Clock } from "@turnbox/core";
import type { Registry } from "../session/registry.ts";

/** What the machine and the service use. */
export interface HostStats {
  readonly atMs: number;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly memoryAvailableBytes: number;
  /** Of one minute. */
  readonly loadAverage: number;
  readonly sessionCount: number;
  readonly activeTools: number;
  /** Of the service itself. */
  readonly serviceMemoryBytes: number;
}

const KIB = 1024;

export async function readHostStats(deps: { readonly registry: Registry; readonly clock: Clock }): Promise<HostStats> {
  const sessions = deps.registry.all();
  const memory = parseMemInfo(await readFile("/proc/meminfo", "utf8"));
  return {
    atMs: deps.clock.nowMs(),
    cpus: cpus().length,
    memoryBytes: memory.totalBytes ?? totalmem(),
    memoryAvailableBytes: memory.availableBytes ?? 0,
    loadAverage: loadavg()[0] ?? 0,
    sessionCount: sessions.length,
    activeTools: sessions.reduce((sum, { gate }) => sum + gate.inFlight, 0),
    serviceMemoryBytes: process.memoryUsage.rss(),
  };
}

/** From `/proc/meminfo`. What is available is more than what is free: the kernel gives its cache back at need. */
export function parseMemInfo(text: string): {
  readonly totalBytes: number | undefined;
  readonly availableBytes: number | undefined;
} {
  const bytesOf = (name: string): number | undefined => {
    const [, kib] = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text) ?? [];
    return kib === undefined ? undefined : Number(kib) * KIB;
  };
  return { totalBytes: bytesOf("MemTotal"), availableBytes: bytesOf("MemAvailable") };
}
