import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { coversTenant, invalidArgument } from "@turnbox/core";
import { principalOf } from "@turnbox/core/server";
import {
  type HostService,
  type ImportTemplateHeader,
  type ImportTemplateRequest,
  HealthStatus,
} from "@turnbox/protocol/turnbox/host/v1/host_pb";
import type { HealthGrade } from "../health/health.ts";
import { toWireCapabilities, toWireTemplate } from "./convert.ts";
import type { StorageStatus } from "../storage/storage.ts";
import type { Host } from "./host.ts";
import { getHostStats } from "./host-stats.ts";

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
      };
    },

    getStats: getHostStats(host),

    getCapabilities: () => ({ capabilities: toWireCapabilities(host), version: host.version }),

    listTemplates: async (_request, context) => {
      const bases = await host.templates.list({ signal: context.signal });
      const isLatest = (index: number): boolean => bases[index - 1]?.name !== bases[index]?.name;
      return { templates: bases.map((base, index) => toWireTemplate(base, isLatest(index) ? "latest" : "older")) };
    },

    importTemplate: async (requests, context) => {
      const parts = requests[Symbol.asyncIterator]();
      const header = await readHeader(parts);
      const base = await host.templates.importArchive(header.name, readData(parts), { signal: context.signal });
      return { template: toWireTemplate(base, "latest") };
    },

    deleteTemplate: async (request, context) => {
      await host.templates.remove({ name: request.name, digest: request.digest }, { signal: context.signal });
      return {};
    },
  };
}

function fragmentationOf(storage: StorageStatus | null): { readonly fragmentationPercent?: number } {
  return storage?.fragmentationPercent === undefined ? {} : { fragmentationPercent: storage.fragmentationPercent };
}

/** Running without isolation is never quiet. */
function runtimeWarnings({ runtime }: Host): readonly string[] {
  return runtime.isolation === "none" ? ["runtime none: tools run on this machine without isolation"] : [];
}

async function readHeader(parts: AsyncIterator<ImportTemplateRequest>): Promise<ImportTemplateHeader> {
  const first = await parts.next();
  if (first.done === true || first.value.part.case !== "header")
    throw invalidArgument("header", "must be the first message");
  return first.value.part.value;
}

async function* readData(parts: AsyncIterator<ImportTemplateRequest>): AsyncIterable<Uint8Array> {
  for (let next = await parts.next(); next.done !== true; next = await parts.next()) {
    if (next.value.part.case !== "data") throw invalidArgument("data", "only data follows the header");
    yield next.value.part.value;
  }
}
