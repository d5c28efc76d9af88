import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  invalidArgument,
  parseEnum,
  parseKey,
  parseLabels,
  parseResources,
  parseSize,
  parseVariables,
} from "@turnbox/core";
import { type Capabilities, CapabilitiesSchema } from "@turnbox/protocol/turnbox/common/v1/capability_pb";
import {
  type CreateSandboxRequest as WireCreateRequest,
  type ForkSandboxRequest as WireForkRequest,
  type ForkSandboxResult as WireForkResult,
  ForkSandboxResultSchema,
  type Sandbox as WireSandbox,
  SandboxSchema,
} from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { type Template as WireTemplate, TemplateSchema } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import type { NetworkPolicy as WireNetworkPolicy } from "@turnbox/protocol/turnbox/host/v1/network_pb";
import {
  OnTimeout as WireOnTimeout,
  type Session,
  SessionSchema,
  SessionState,
} from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type {
  CreateSandboxRequest,
  ForkResult,
  ForkSandboxRequest,
  NetworkPolicy,
  OnTimeout,
  Sandbox,
  SandboxCapabilities,
  SandboxSession,
  SandboxState,
  Template,
} from "../control/sandbox-control.ts";
import { parseName, parsePositiveMs, parseTemplate } from "./validate.ts";

const STATES = {
  creating: SessionState.CREATING,
  active: SessionState.ACTIVE,
  paused: SessionState.PAUSED,
  destroying: SessionState.DESTROYING,
  failed: SessionState.FAILED,
} as const satisfies Record<SandboxState, SessionState>;

const ON_TIMEOUTS: ReadonlyMap<number, OnTimeout | "default"> = new Map<number, OnTimeout | "default">([
  [WireOnTimeout.UNSPECIFIED, "default"],
  [WireOnTimeout.PAUSE, "pause"],
  [WireOnTimeout.DESTROY, "destroy"],
]);

/** The request in the domain's words; each field that breaks its rule is named. */
export function fromCreateRequest(request: WireCreateRequest): CreateSandboxRequest {
  const name = parseName(request.name);
  const quotaBytes = parseSize("quota_bytes", request.quotaBytes);
  const ttlMs = parsePositiveMs("ttl", request.ttl);
  const idleTimeoutMs = parsePositiveMs("idle_timeout", request.idleTimeout);
  const onTimeout = parseEnum("on_timeout", request.onTimeout, ON_TIMEOUTS);
  return {
    idempotencyKey: parseKey("idempotency_key", request.idempotencyKey),
    ...(name === undefined ? {} : { name }),
    labels: parseLabels("labels", request.labels),
    template: parseTemplate(request.template),
    resources: parseResources(request.resources),
    ...(quotaBytes === undefined ? {} : { quotaBytes }),
    lifetime: {
      ...(ttlMs === undefined ? {} : { ttlMs }),
      ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }),
      ...(onTimeout === "default" ? {} : { onTimeout }),
    },
    env: parseVariables("env", request.env),
    ...(request.networkPolicy === undefined ? {} : { network: fromNetworkPolicy(request.networkPolicy) }),
    ...(request.discardIfAbandoned ? { ifAbandoned: "discard" } : {}),
  };
}

function fromNetworkPolicy(policy: WireNetworkPolicy): NetworkPolicy {
  return {
    publicIngress: policy.allowPublicIngress ? "allowed" : "denied",
    outbound: policy.allowOutbound ? "allowed" : "denied",
    allowList: [...policy.allowList],
    denyList: [...policy.denyList],
    enforcement: policy.required ? "required" : "preferred",
  };
}

export function toWireSandbox(sandbox: Sandbox): WireSandbox {
  return create(SandboxSchema, {
    sandboxId: sandbox.sandboxId,
    name: sandbox.name ?? "",
    address: sandbox.address,
    capabilities: toWireCapabilities(sandbox.capabilities),
    session: toWireSession(sandbox.session),
  });
}

function toWireSession(session: SandboxSession): Session {
  const { resources } = session;
  return create(SessionSchema, {
    sessionId: session.sessionId,
    state: STATES[session.state],
    generation: session.generation,
    base: session.base,
    labels: { ...session.labels },
    createdAt: timestampFromMs(session.createdAtMs),
    ...(session.expiresAtMs === undefined ? {} : { expiresAt: timestampFromMs(session.expiresAtMs) }),
    turnCount: session.turnCount,
    snapshotCount: session.snapshotCount,
    spaceUsedBytes: BigInt(session.spaceUsedBytes),
    resources: {
      cpus: resources.cpus ?? 0,
      memoryBytes: BigInt(resources.memoryBytes ?? 0),
      pids: resources.pids ?? 0,
    },
    quotaBytes: BigInt(session.quotaBytes),
    parentSnapshotId: session.parentSnapshotId,
    failure: session.failure,
    onTimeout: session.onTimeout === "pause" ? WireOnTimeout.PAUSE : WireOnTimeout.DESTROY,
    ...(session.idleTimeoutMs === undefined ? {} : { idleTimeout: durationFromMs(session.idleTimeoutMs) }),
    activeTools: session.activeTools,
  });
}

export function toWireCapabilities({ maxSandboxDurationMs, ...capabilities }: SandboxCapabilities): Capabilities {
  return create(CapabilitiesSchema, {
    ...capabilities,
    ...(maxSandboxDurationMs === 0 ? {} : { maxSandboxDuration: durationFromMs(maxSandboxDurationMs) }),
  });
}

export function toWireTemplate({ createdAtMs, sizeBytes, ...template }: Template): WireTemplate {
  return create(TemplateSchema, {
    ...template,
    createdAt: timestampFromMs(createdAtMs),
    sizeBytes: BigInt(sizeBytes),
  });
}

const MAX_CHILDREN = 100;
const MAX_SNAPSHOT_ID_BYTES = 128;

/** The request in the domain's words; each field that breaks its rule is named. */
export function fromForkRequest(request: WireForkRequest): ForkSandboxRequest {
  if (request.count > MAX_CHILDREN) throw invalidArgument("count", `must be at most ${String(MAX_CHILDREN)}`);
  if (Buffer.byteLength(request.snapshotId) > MAX_SNAPSHOT_ID_BYTES)
    throw invalidArgument("snapshot_id", "is longer than any id of a snapshot");
  return {
    sandboxId: request.sandboxId,
    idempotencyKey: parseKey("idempotency_key", request.idempotencyKey),
    snapshotId: request.snapshotId,
    count: request.count === 0 ? 1 : request.count,
    labels: parseLabels("labels", request.labels),
  };
}

export function toWireForkResult(result: ForkResult): WireForkResult {
  return create(
    ForkSandboxResultSchema,
    result.kind === "forked"
      ? { result: { case: "sandbox", value: toWireSandbox(result.sandbox) } }
      : { result: { case: "reason", value: result.error.reason }, message: result.error.message },
  );
}
