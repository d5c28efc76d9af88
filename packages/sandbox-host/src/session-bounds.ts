import type { HostConfig } from "./config.ts";
import { boundLimits, type Ceilings, type SessionDefaults } from "./session/ceilings.ts";

const MiB = 1024 * 1024;
const PIDS = 4096;
/** A sandbox at rest takes about 14 MiB, so that memory ends before this number is reached. */
const MEMORY_PER_SESSION = 8 * MiB;
const RESERVED_SHARE = 1 / 16;
const POOL_STEP = 64 * MiB;

/** What the machine has. */
export interface Machine {
  readonly cpus: number;
  readonly memoryBytes: number;
  /** The size of the pool; undefined if it is not known. */
  readonly poolBytes: number | undefined;
}

type BoundSettings = Pick<
  HostConfig,
  "maxCpus" | "maxMemory" | "maxPids" | "maxSessionQuota" | "maxTtl" | "defaultCpus" | "defaultMemory" | "defaultPids"
>;

/** The ceilings of the settings. One that is not set is what the machine has, or the default if that is more. */
export function sessionCeilings(config: BoundSettings, machine: Machine): Ceilings {
  const { maxCpus, maxMemory, maxPids, maxSessionQuota, maxTtl } = config;
  return {
    ...entry("cpus", maxCpus ?? Math.max(machine.cpus, config.defaultCpus)),
    ...entry("memoryBytes", maxMemory ?? Math.max(machine.memoryBytes, config.defaultMemory)),
    ...entry("pids", maxPids ?? Math.max(PIDS, config.defaultPids)),
    ...entry("quotaBytes", maxSessionQuota ?? wholeSteps(machine.poolBytes ?? 0)),
    ...entry("ttlMs", maxTtl ?? 0),
    unnamed: {
      ...entry("cpus", maxCpus ?? 0),
      ...entry("memoryBytes", maxMemory ?? 0),
      ...entry("pids", maxPids ?? 0),
    },
    ...entry("unnamedTtlMs", maxTtl ?? 0),
  };
}

/** A pool does not say the same to the byte each time, and a bound should not change with each start. */
function wholeSteps(bytes: number): number {
  return Math.floor(bytes / POOL_STEP) * POOL_STEP;
}

/** 0 is none. */
function entry<Name extends string>(name: Name, value: number): Partial<Record<Name, number>> {
  return value === 0 ? {} : ({ [name]: value } as Record<Name, number>);
}

/** No default is above its ceiling. */
export function sessionDefaults(config: HostConfig, ceilings: Ceilings): SessionDefaults {
  const { defaultSessionQuota: quota } = config;
  const named = {
    pids: config.defaultPids,
    ...entry("cpus", config.defaultCpus),
    ...entry("memoryBytes", config.defaultMemory),
  };
  return {
    quotaBytes: quota === 0 ? null : Math.min(quota, ceilings.quotaBytes ?? quota),
    limits: boundLimits(named, ceilings),
    pauseDrainTimeoutMs: config.pauseDrainTimeout,
    snapshotPrefix: config.snapshotPrefix,
  };
}

/** How many sessions the host takes; 0 is no limit. */
export function hostCapacity({ maxSessions }: Pick<HostConfig, "maxSessions">, memoryBytes: number): number {
  return maxSessions ?? Math.max(1, Math.floor(memoryBytes / MEMORY_PER_SESSION));
}

/** What all sandboxes together may use of the machine's memory. */
export function sandboxMemory({ memoryReserve }: Pick<HostConfig, "memoryReserve">, memoryBytes: number): number {
  const reserve = memoryReserve ?? Math.floor(memoryBytes * RESERVED_SHARE);
  return Math.max(Math.floor(memoryBytes / 2), memoryBytes - reserve);
}
