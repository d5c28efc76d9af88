import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { coversTenant } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import { HealthStatus, type HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import type { HealthGrade } from "../health/grade.ts";
import type { StorageStatus } from "../storage/storage.ts";
import { toWireCapabilities } from "./convert.ts";
import { getHostStats } from "./host-stats.ts";
import type { Host } from "./host.ts";
import { setAdmission, toWireAdmission } from "./set-admission.ts";
import { deleteTemplate, importTemplate, listTemplates } from "./templates.ts";

const STATUS = {
  healthy: HealthStatus.HEALTHY,
  degraded: HealthStatus.DEGRADED,
  unhealthy: HealthStatus.UNHEALTHY,
} as const satisfies Record<HealthGrade, HealthStatus>;

/** HostService: the machine itself. */
export function createHostService(host: Host): Partial<ServiceImpl<typeof HostService>> {
  return {
    healthCheck: async (_request, context) => {
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
    },

    getStats: getHostStats(host),

    getCapabilities: () => ({ capabilities: toWireCapabilities(host), version: host.version }),

    listTemplates: listTemplates(host),
    importTemplate: importTemplate(host),
    deleteTemplate: deleteTemplate(host),

    setAdmission: setAdmission(host),
  };
}

function fragmentationOf(storage: StorageStatus | null): { readonly fragmentationPercent?: number } {
  return storage?.fragmentationPercent === undefined ? {} : { fragmentationPercent: storage.fragmentationPercent };
}

/** Running without isolation is never quiet. */
function runtimeWarnings({ runtime }: Host): readonly string[] {
  return runtime.isolation === "none" ? ["runtime none: tools run on this machine without isolation"] : [];
}
