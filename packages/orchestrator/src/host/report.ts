import { hasReason } from "@turnbox/core";
import {
  Admission,
  type GetStatsResponse,
  type HealthCheckResponse,
  HealthStatus,
  type Template,
} from "@turnbox/protocol/turnbox/host/v1/host_pb";
import type { HostReport } from "../control/host-connection.ts";
import { fromTemplate } from "./convert.ts";

const HEALTH: ReadonlyMap<HealthStatus, HostReport["health"]> = new Map([
  [HealthStatus.HEALTHY, "healthy"],
  [HealthStatus.DEGRADED, "degraded"],
  [HealthStatus.UNHEALTHY, "unhealthy"],
]);

interface Answers {
  readonly health: HealthCheckResponse;
  readonly stats: GetStatsResponse | undefined;
  readonly templates: readonly Template[];
}

export function toReport({ health, stats, templates }: Answers): HostReport {
  const { poolSpace } = health;
  return {
    ...machineOf(stats),
    health: HEALTH.get(health.status) ?? "unhealthy",
    sessionCount: health.sessionCount,
    maxSessions: health.maxSessions,
    poolBytes: Number(poolSpace?.sizeBytes ?? 0n),
    poolAvailableBytes: Number(poolSpace?.availableBytes ?? 0n),
    admission: health.admission === Admission.CLOSED ? "closed" : "open",
    templates: templates.map(fromTemplate),
    problems: health.errors,
  };
}

function machineOf(
  stats: GetStatsResponse | undefined,
): Pick<HostReport, "cpus" | "memoryBytes" | "memoryAvailableBytes"> {
  if (stats === undefined) return { cpus: 0, memoryBytes: 0, memoryAvailableBytes: 0 };
  const { cpus, memoryBytes, memoryAvailableBytes } = stats;
  return { cpus, memoryBytes: Number(memoryBytes), memoryAvailableBytes: Number(memoryAvailableBytes) };
}

/** A host that does not offer a question says nothing about its answer. */
export function unlessMissing(error: unknown): undefined {
  if (!hasReason(error, "UNIMPLEMENTED")) throw error;
}
