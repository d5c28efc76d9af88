import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { readHostStats } from "../health/stats.ts";
import type { Host } from "./host.ts";

/** GetStats. */
export function getHostStats(host: Host): ServiceImpl<typeof HostService>["getStats"] {
  return async () => {
    const stats = await readHostStats(host);
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
