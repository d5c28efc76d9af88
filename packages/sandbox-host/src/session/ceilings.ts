import { invalidArgument } from "@turnbox/core";
import type { ContainerLimits } from "../runtime/runtime.ts";

/** The most that a session may be given; what is absent has no ceiling. */
export interface Ceilings {
  readonly cpus?: number;
  readonly memoryBytes?: number;
  readonly pids?: number;
  readonly quotaBytes?: number;
  readonly ttlMs?: number;
  /** What holds for a session that names no limit of its own: the ceilings that the operator has set. */
  readonly unnamed: ContainerLimits;
  readonly unnamedTtlMs?: number;
}

/** What sessions have unless they ask for something else. */
export interface SessionDefaults {
  readonly quotaBytes: number | null;
  readonly limits: ContainerLimits;
  readonly pauseDrainTimeoutMs: number;
  /** What the names of turn snapshots begin with. */
  readonly snapshotPrefix: string;
}

/** What a request asks for. */
export interface Wanted {
  readonly limits: ContainerLimits;
  readonly quotaBytes: number | null;
  readonly ttlMs: number | null;
}

/** Refuses, by its name, what is above a ceiling. */
export function checkCeilings({ limits, quotaBytes, ttlMs }: Wanted, ceilings: Ceilings): void {
  const fields = [
    { name: "resources.cpus", value: limits.cpus, most: ceilings.cpus, key: "maxCpus" },
    { name: "resources.memory_bytes", value: limits.memoryBytes, most: ceilings.memoryBytes, key: "maxMemory" },
    { name: "resources.pids", value: limits.pids, most: ceilings.pids, key: "maxPids" },
    { name: "quota_bytes", value: quotaBytes, most: ceilings.quotaBytes, key: "maxSessionQuota" },
  ];
  for (const { name, value, most, key } of fields) {
    if (value === undefined || value === null || most === undefined || value <= most) continue;
    throw invalidArgument(name, `must be at most ${most} on this host (${key})`);
  }
  checkTtl(ttlMs, ceilings);
}

export function checkTtl(ttlMs: number | null, ceilings: Ceilings): void {
  if (ttlMs === null || ceilings.ttlMs === undefined || ttlMs <= ceilings.ttlMs) return;
  throw invalidArgument("ttl", `must be at most ${ceilings.ttlMs / 1000} s on this host (maxTtl)`);
}

/** Limits that come from another session: no more than the ceilings. */
export function boundLimits(limits: ContainerLimits, ceilings: Ceilings): ContainerLimits {
  const names = ["cpus", "memoryBytes", "pids"] as const;
  const bounded = names.flatMap((name) => {
    const value = limits[name] ?? ceilings.unnamed[name];
    return value === undefined ? [] : [[name, Math.min(value, ceilings[name] ?? value)] as const];
  });
  return Object.fromEntries(bounded);
}

/** How long a session lives that names this, or nothing. */
export function boundTtl(ttlMs: number | null, { unnamedTtlMs, ttlMs: most }: Ceilings): number | null {
  const value = ttlMs ?? unnamedTtlMs ?? null;
  return value === null || most === undefined ? value : Math.min(value, most);
}
