import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { coversTenant, invalidArgument, parseEnum } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import { Admission, HealthStatus, type HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import type { AdmissionState, Cordon } from "../cordon/cordon.ts";
import type { HealthGrade } from "../health/grade.ts";
import type { Health } from "../health/health.ts";
import type { HostStats } from "../health/stats.ts";
import type { StorageStatus } from "../storage/storage.ts";
import type { WarmPool } from "../warm/pool.ts";
import { type CapabilitySource, toWireCapabilities } from "./convert.ts";
import { EPOCH_HEADER, parseEpoch } from "./fence-interceptor.ts";
import { deleteTemplate, importTemplate, listTemplates, type TemplateParts } from "./templates.ts";

/** What HostService needs. */
export interface HostServiceParts extends CapabilitySource, TemplateParts {
  readonly health: Pick<Health, "report">;
  /** Reads what the machine and the service use. */
  readonly hostStats: () => Promise<HostStats>;
  readonly warm: Pick<WarmPool, "stats">;
  readonly cordon: Pick<Cordon, "set" | "state">;
  readonly version: string;
}

type Handlers = ServiceImpl<typeof HostService>;

const STATUS = {
  healthy: HealthStatus.HEALTHY,
  degraded: HealthStatus.DEGRADED,
  unhealthy: HealthStatus.UNHEALTHY,
} as const satisfies Record<HealthGrade, HealthStatus>;

const ADMISSION_STATES: ReadonlyMap<number, AdmissionState> = new Map([
  [Admission.OPEN, "open"],
  [Admission.CLOSED, "closed"],
]);

/** HostService: the machine itself. */
export function createHostService(host: HostServiceParts): Partial<Handlers> {
  return {
    healthCheck: healthCheck(host),
    getStats: getStats(host),
    getCapabilities: () => ({ capabilities: toWireCapabilities(host), version: host.version }),
    listTemplates: listTemplates(host),
    importTemplate: importTemplate(host),
    deleteTemplate: deleteTemplate(host),
    setAdmission: setAdmission(host),
  };
}

function healthCheck(host: HostServiceParts): Handlers["healthCheck"] {
  return async (_request, context) => {
    const caller = principalOf(context);
    const report = await host.health.report();
    return {
      status: STATUS[report.grade],
      poolState: report.storage?.detail ?? "UNKNOWN",
      poolSpace: {
        sizeBytes: BigInt(report.storage?.sizeBytes ?? 0),
        usedBytes: BigInt(report.storage?.usedBytes ?? 0),
        availableBytes: BigInt(report.storage?.availableBytes ?? 0),
        ...fragmentationOf(report.storage),
      },
      sessionCount: report.sessionCount,
      activeTools: report.activeTools,
      uptime: durationFromMs(Math.round(report.uptimeMs)),
      errors: [...report.errors, ...runtimeWarnings(host)],
      backgroundDestroys: report.removals
        .filter(({ tenant }) => coversTenant(caller, tenant))
        .map((removal) => ({
          sessionId: removal.sessionId,
          since: timestampFromMs(removal.sinceMs),
          attempts: removal.attempts,
          lastError: removal.lastError,
        })),
      maxSessions: host.maxSessions,
      admission: toWireAdmission(host.cordon.state),
    };
  };
}

function fragmentationOf(storage: StorageStatus | null): { readonly fragmentationPercent?: number } {
  return storage?.fragmentationPercent === undefined ? {} : { fragmentationPercent: storage.fragmentationPercent };
}

/** Running without isolation is never quiet. */
function runtimeWarnings({ runtime }: CapabilitySource): readonly string[] {
  return runtime.isolation === "none" ? ["runtime none: tools run on this machine without isolation"] : [];
}

function getStats(host: HostServiceParts): Handlers["getStats"] {
  return async () => {
    const stats = await host.hostStats();
    const warm = host.warm.stats();
    return {
      at: timestampFromMs(Math.round(stats.atMs)),
      cpus: stats.cpus,
      memoryBytes: BigInt(stats.memoryBytes),
      memoryAvailableBytes: BigInt(stats.memoryAvailableBytes),
      loadAverage: stats.loadAverage,
      sessionCount: stats.sessionCount,
      activeTools: stats.activeTools,
      warmSessions: warm.ready,
      warmHits: warm.hits,
      warmMisses: warm.misses,
      serviceMemoryBytes: BigInt(stats.serviceMemoryBytes),
    };
  };
}

/** SetAdmission: a command, so it names its epoch. */
function setAdmission({ cordon }: HostServiceParts): Handlers["setAdmission"] {
  return async (request, { requestHeader, signal }) => {
    const epoch = parseEpoch(requestHeader.get(EPOCH_HEADER));
    if (epoch === undefined) throw invalidArgument(EPOCH_HEADER, "is required");
    await cordon.set({ state: parseEnum("admission", request.admission, ADMISSION_STATES), epoch }, { signal });
    return { admission: toWireAdmission(cordon.state) };
  };
}

function toWireAdmission(state: AdmissionState): Admission {
  return state === "open" ? Admission.OPEN : Admission.CLOSED;
}
