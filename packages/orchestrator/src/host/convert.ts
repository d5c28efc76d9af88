import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { isReason, type Reason, SandboxError } from "@turnbox/core";
import type { Capabilities } from "@turnbox/protocol/turnbox/common/v1/capability_pb";
import type { ResourceSpec as WireResources } from "@turnbox/protocol/turnbox/common/v1/resource_pb";
import type { Template as WireTemplate } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { type Process, ProcessState } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import {
  type CreateSessionRequestSchema,
  type ForkResult as WireForkResult,
  OnTimeout as WireOnTimeout,
  type Session,
  SessionState,
  ToolsPolicy,
} from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { reachableAddress } from "../control/reachable-address.ts";
import type {
  CreateSandboxRequest,
  PauseSandboxRequest,
  ProcessStatus,
  ResourceSpec,
  SandboxCapabilities,
  SandboxProcess,
  SandboxSession,
  SandboxState,
  Template,
} from "../control/sandbox-control.ts";

const STATES: ReadonlyMap<SessionState, SandboxState> = new Map([
  [SessionState.CREATING, "creating"],
  [SessionState.ACTIVE, "active"],
  [SessionState.PAUSED, "paused"],
  [SessionState.DESTROYING, "destroying"],
  [SessionState.FAILED, "failed"],
]);

const PROCESS_STATES: ReadonlyMap<ProcessState, ProcessStatus> = new Map([
  [ProcessState.STARTING, "starting"],
  [ProcessState.RUNNING, "running"],
  [ProcessState.EXITED, "exited"],
]);

const TOOLS = { wait: ToolsPolicy.WAIT, refuse: ToolsPolicy.REFUSE, kill: ToolsPolicy.KILL } as const;

/** A part that an answer of the host must have. */
export function required<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new SandboxError("INTERNAL", `the host's answer has no ${what}`);
  return value;
}

export function toCreateSession(
  request: CreateSandboxRequest,
  sessionId: string,
): MessageInitShape<typeof CreateSessionRequestSchema> {
  const { lifetime, network, resources } = request;
  return {
    idempotencyKey: request.idempotencyKey,
    sessionId,
    base: request.template,
    quotaBytes: BigInt(request.quotaBytes ?? 0),
    labels: { ...request.labels },
    resources: {
      cpus: resources.cpus ?? 0,
      memoryBytes: BigInt(resources.memoryBytes ?? 0),
      pids: resources.pids ?? 0,
    },
    env: { ...request.env },
    ...(lifetime.ttlMs === undefined ? {} : { ttl: durationFromMs(lifetime.ttlMs) }),
    ...(lifetime.idleTimeoutMs === undefined ? {} : { idleTimeout: durationFromMs(lifetime.idleTimeoutMs) }),
    onTimeout: toOnTimeout(lifetime.onTimeout),
    ...(network === undefined
      ? {}
      : {
          networkPolicy: {
            allowPublicIngress: network.publicIngress === "allowed",
            allowOutbound: network.outbound === "allowed",
            allowList: [...network.allowList],
            denyList: [...network.denyList],
            required: network.enforcement === "required",
          },
        }),
  };
}

function toOnTimeout(onTimeout: CreateSandboxRequest["lifetime"]["onTimeout"]): WireOnTimeout {
  if (onTimeout === undefined) return WireOnTimeout.UNSPECIFIED;
  return onTimeout === "pause" ? WireOnTimeout.PAUSE : WireOnTimeout.DESTROY;
}

export function toToolsPolicy(tools: PauseSandboxRequest["tools"]): ToolsPolicy {
  return TOOLS[tools];
}

export function fromSession(session: Session): SandboxSession {
  return {
    sessionId: session.sessionId,
    state: required(STATES.get(session.state), "state that is known here"),
    generation: session.generation,
    base: session.base,
    labels: { ...session.labels },
    createdAtMs: session.createdAt === undefined ? 0 : timestampMs(session.createdAt),
    ...(session.expiresAt === undefined ? {} : { expiresAtMs: timestampMs(session.expiresAt) }),
    turnCount: session.turnCount,
    snapshotCount: session.snapshotCount,
    spaceUsedBytes: Number(session.spaceUsedBytes),
    resources: fromResources(session.resources),
    quotaBytes: Number(session.quotaBytes),
    parentSnapshotId: session.parentSnapshotId,
    failure: session.failure,
    onTimeout: session.onTimeout === WireOnTimeout.PAUSE ? "pause" : "destroy",
    ...(session.idleTimeout === undefined ? {} : { idleTimeoutMs: durationMs(session.idleTimeout) }),
    activeTools: session.activeTools,
  };
}

function fromResources(resources: WireResources | undefined): ResourceSpec {
  if (resources === undefined) return {};
  return {
    ...(resources.cpus === 0 ? {} : { cpus: resources.cpus }),
    ...(resources.memoryBytes === 0n ? {} : { memoryBytes: Number(resources.memoryBytes) }),
    ...(resources.pids === 0 ? {} : { pids: resources.pids }),
  };
}

export function fromCapabilities(capabilities: Capabilities): SandboxCapabilities {
  const { maxSandboxDuration } = capabilities;
  return {
    snapshots: capabilities.snapshots,
    rollback: capabilities.rollback,
    fork: capabilities.fork,
    pause: capabilities.pause,
    launchProcess: capabilities.launchProcess,
    deepPause: capabilities.deepPause,
    concurrentSandboxes: capabilities.concurrentSandboxes,
    maxSandboxDurationMs: maxSandboxDuration === undefined ? 0 : durationMs(maxSandboxDuration),
    pausePreservesProcesses: capabilities.pausePreservesProcesses,
    tierRouting: capabilities.tierRouting,
    streamingProgress: capabilities.streamingProgress,
    storage: capabilities.storage,
    runtime: capabilities.runtime,
  };
}

/** A process of the host at `hostUrl`. */
export function fromProcess(process: Process, hostUrl: string): SandboxProcess {
  return {
    processId: process.processId,
    address: reachableAddress(process.address, hostUrl),
    status: required(PROCESS_STATES.get(process.state), "process state that is known here"),
    ...(process.exitCode === undefined ? {} : { exitCode: process.exitCode }),
  };
}

export function fromTemplate(template: WireTemplate): Template {
  return {
    name: template.name,
    digest: template.digest,
    createdAtMs: template.createdAt === undefined ? 0 : timestampMs(template.createdAt),
    sizeBytes: Number(template.sizeBytes),
    latest: template.latest,
  };
}

/** Why one child of a fork was not made. */
export function fromForkFailure({ result, message }: WireForkResult): SandboxError {
  const stated = result.case === "reason" ? result.value : "";
  const reason: Reason = isReason(stated) ? stated : "INTERNAL";
  return new SandboxError(reason, message === "" ? "the child was not made" : message);
}
