import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { principalOf } from "@turnbox/rpc/server";
import type { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { readSessionStats } from "../session/stats.ts";
import type { Host } from "./host.ts";

/** GetSessionStats. */
export function getSessionStats(host: Host): ServiceImpl<typeof SessionService>["getSessionStats"] {
  return async (request, context) => {
    const session = host.registry.get(request.sessionId, principalOf(context));
    const stats = await readSessionStats(host, session, { signal: context.signal });
    return {
      at: timestampFromMs(Math.round(stats.atMs)),
      cpuTime: durationFromMs(Math.round(stats.cpuMs)),
      memoryBytes: BigInt(Math.round(stats.memoryBytes)),
      memoryLimitBytes: BigInt(stats.memoryLimitBytes ?? 0),
      pids: stats.processes,
      referencedBytes: BigInt(stats.referencedBytes),
      spaceUsedBytes: BigInt(stats.spaceUsedBytes),
      networkReceivedBytes: BigInt(stats.traffic.receivedBytes),
      networkSentBytes: BigInt(stats.traffic.sentBytes),
    };
  };
}
