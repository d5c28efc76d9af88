import { SandboxError } from "@turnbox/core";
import {
  type GetStatsResponse,
  HealthStatus,
  type HealthCheckResponse,
} from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { DEFAULT_TIMEOUT_MS } from "../sandbox/link/default-timeouts.ts";
import { toNumber } from "../sandbox/wire/number.ts";
import { toDateOrEpoch } from "../sandbox/wire/time.ts";
import type { Fleet, HostReport, HostStats } from "./fleet-types.ts";
import type { FleetHost, OperatorHosts } from "./operator-hosts.ts";

const STATUSES: ReadonlyMap<HealthStatus, HostStats["status"]> = new Map([
  [HealthStatus.HEALTHY, "healthy"],
  [HealthStatus.DEGRADED, "degraded"],
  [HealthStatus.UNHEALTHY, "unhealthy"],
]);

interface HostCall {
  readonly signal?: AbortSignal;
  readonly timeoutMs: number;
}

export function createHostReports(hosts: OperatorHosts): Fleet["hosts"] {
  const ask = async (at: FleetHost, call: HostCall): Promise<HostReport> => {
    using host = hosts.open(at);
    try {
      const [stats, health] = await Promise.all([host.host.getStats({}, call), host.host.healthCheck({}, call)]);
      return { ...at, stats: toHostStats(stats, health) };
    } catch (thrown) {
      return { ...at, error: SandboxError.from(thrown) };
    }
  };
  return async (options = {}) => {
    const call = { timeoutMs: DEFAULT_TIMEOUT_MS.read, ...options };
    const all = await hosts.list(call);
    hosts.assertTrusted("hosts are measured", all);
    const reports = await Promise.all(all.map((host) => ask(host, call)));
    options.signal?.throwIfAborted();
    return reports;
  };
}

const toHostStats = (stats: GetStatsResponse, health: HealthCheckResponse): HostStats => ({
  at: toDateOrEpoch(stats.at),
  status: STATUSES.get(health.status) ?? "unknown",
  cpus: stats.cpus,
  loadAverage: stats.loadAverage,
  memoryBytes: toNumber(stats.memoryBytes),
  memoryAvailableBytes: toNumber(stats.memoryAvailableBytes),
  serviceMemoryBytes: toNumber(stats.serviceMemoryBytes),
  sandboxCount: stats.sessionCount,
  maxSandboxes: health.maxSessions === 0 ? undefined : health.maxSessions,
  activeTools: stats.activeTools,
  poolState: health.poolState,
  poolSizeBytes: toNumber(health.poolSpace?.sizeBytes ?? 0n),
  poolAvailableBytes: toNumber(health.poolSpace?.availableBytes ?? 0n),
  errors: health.errors,
});
