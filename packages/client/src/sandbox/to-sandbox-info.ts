import { create } from "@bufbuild/protobuf";
import { type Capabilities, CapabilitiesSchema } from "@turnbox/protocol/turnbox/common/v1/capability_pb";
import type { Sandbox } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import {
  type GetSessionStatsResponse,
  OnTimeout,
  SessionSchema,
  SessionState,
} from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { SandboxCapabilities, SandboxInfo, SandboxState, SandboxStats } from "./sandbox-info.ts";
import { toNumber } from "./wire/number.ts";
import { toOptional } from "./wire/text.ts";
import { toDate, toDateOrEpoch, toMs } from "./wire/time.ts";

/** A state of a newer server is one in which nothing can be done yet. */
const STATES: ReadonlyMap<SessionState, SandboxState> = new Map([
  [SessionState.CREATING, "creating"],
  [SessionState.ACTIVE, "active"],
  [SessionState.PAUSED, "paused"],
  [SessionState.DESTROYING, "destroying"],
  [SessionState.FAILED, "failed"],
]);

export function toSandboxInfo({
  sandboxId,
  name,
  address,
  capabilities = create(CapabilitiesSchema),
  session = create(SessionSchema),
}: Sandbox): SandboxInfo {
  return {
    id: sandboxId,
    name: toOptional(name),
    state: toState(session.state),
    generation: session.generation,
    base: session.base,
    labels: { ...session.labels },
    createdAt: toDateOrEpoch(session.createdAt),
    expiresAt: toDate(session.expiresAt),
    idleTimeoutMs: toMs(session.idleTimeout),
    onTimeout: session.onTimeout === OnTimeout.PAUSE ? "pause" : "destroy",
    turnCount: session.turnCount,
    snapshotCount: session.snapshotCount,
    spaceUsedBytes: toNumber(session.spaceUsedBytes),
    parentSnapshotId: toOptional(session.parentSnapshotId),
    failure: toOptional(session.failure),
    activeTools: session.activeTools,
    address,
    capabilities: toCapabilities(capabilities),
  };
}

export const toState = (state: SessionState): SandboxState => STATES.get(state) ?? "creating";

export function toCapabilities(capabilities: Capabilities): SandboxCapabilities {
  const { $typeName: _type, $unknown: _unknown, maxSandboxDuration, ...plain } = capabilities;
  return { ...plain, maxSandboxDurationMs: toMs(maxSandboxDuration) };
}

export function toSandboxStats(stats: GetSessionStatsResponse): SandboxStats {
  return {
    at: toDateOrEpoch(stats.at),
    cpuTimeMs: toMs(stats.cpuTime) ?? 0,
    memoryBytes: toNumber(stats.memoryBytes),
    memoryLimitBytes: toNumber(stats.memoryLimitBytes),
    pids: stats.pids,
    referencedBytes: toNumber(stats.referencedBytes),
    spaceUsedBytes: toNumber(stats.spaceUsedBytes),
    networkReceivedBytes: toNumber(stats.networkReceivedBytes),
    networkSentBytes: toNumber(stats.networkSentBytes),
  };
}
