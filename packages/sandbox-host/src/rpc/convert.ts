import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Capabilities, CapabilitiesSchema } from "@turnbox/protocol/turnbox/common/v1/capability_pb";
import { type Template, TemplateSchema } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import {
  OnTimeout,
  type Session as WireSession,
  SessionSchema,
  SessionState,
} from "@turnbox/protocol/turnbox/host/v1/session_pb";
import {
  type Snapshot,
  SnapshotKind as WireKind,
  TurnOutcome as WireOutcome,
  SnapshotSchema,
} from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import {
  type ExecuteToolResponse,
  ExecuteToolResponseSchema,
  ExitReason as WireExit,
} from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import type { Phase, SnapshotKind, SnapshotRow, TurnOutcome } from "../record/row.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Session } from "../session/session.ts";
import type { SessionFacts } from "../session/session-usage.ts";
import type { BaseInfo, SnapshotInfo, Storage } from "../storage/storage.ts";
import type { LedgerAnswer } from "../tool/ledger.ts";
import type { ExitReason } from "../tool/result.ts";

const STATES = {
  creating: SessionState.CREATING,
  active: SessionState.ACTIVE,
  paused: SessionState.PAUSED,
  destroying: SessionState.DESTROYING,
  failed: SessionState.FAILED,
} as const satisfies Record<Phase["kind"], SessionState>;

const KINDS = {
  turn: WireKind.TURN,
  named: WireKind.NAMED,
  tool: WireKind.TOOL,
  undo: WireKind.UNDO,
} as const satisfies Record<SnapshotKind, WireKind>;

const OUTCOMES = {
  succeeded: WireOutcome.SUCCEEDED,
  failed: WireOutcome.FAILED,
} as const satisfies Record<TurnOutcome, WireOutcome>;

const EXITS = {
  exited: WireExit.EXITED,
  timed_out: WireExit.TIMED_OUT,
  killed: WireExit.KILLED,
  oom: WireExit.OOM,
  sandbox_lost: WireExit.SANDBOX_LOST,
} as const satisfies Record<ExitReason, WireExit>;

export const SESSION_STATES: ReadonlyMap<number, Phase["kind"]> = new Map(
  Object.entries(STATES).map(([kind, state]) => [state, kind as Phase["kind"]]),
);

export const TURN_OUTCOMES: ReadonlyMap<number, TurnOutcome> = new Map([
  [WireOutcome.UNSPECIFIED, "succeeded"],
  [WireOutcome.SUCCEEDED, "succeeded"],
  [WireOutcome.FAILED, "failed"],
]);

export function toWireSession({ row, gate }: Session, facts: SessionFacts): WireSession {
  const { expiresAtMs, idleTimeoutMs, onTimeout } = row.timing;
  return create(SessionSchema, {
    ...(expiresAtMs === null ? {} : { expiresAt: timestampFromMs(expiresAtMs) }),
    ...(idleTimeoutMs === null ? {} : { idleTimeout: durationFromMs(idleTimeoutMs) }),
    onTimeout: onTimeout === "pause" ? OnTimeout.PAUSE : OnTimeout.DESTROY,
    sessionId: row.id,
    tenant: row.tenant,
    state: STATES[row.phase.kind],
    generation: row.generation,
    base: `${row.base.name}@${row.base.digest}`,
    labels: { ...row.labels },
    createdAt: timestampFromMs(row.createdAtMs),
    turnCount: row.turnCounter,
    snapshotCount: facts.snapshotCount,
    spaceUsedBytes: BigInt(facts.spaceUsedBytes),
    resources: {
      cpus: row.limits.cpus ?? 0,
      memoryBytes: BigInt(row.limits.memoryBytes ?? 0),
      pids: row.limits.pids ?? 0,
    },
    quotaBytes: BigInt(row.quotaBytes ?? 0),
    parentSnapshotId: row.parentSnapshot ?? "",
    failure: row.phase.kind === "failed" ? row.phase.message : "",
    activeTools: gate.inFlight,
  });
}

/** What is known of a snapshot beside its row. */
export interface SnapshotFacts {
  /** Absent if the storage was not asked. */
  readonly stored?: SnapshotInfo;
  /** The snapshot that the session's files continue from. */
  readonly headParent: string | null;
  readonly prefix: string;
}

export function toWireSnapshot(row: SnapshotRow, more: SnapshotFacts): Snapshot {
  return create(SnapshotSchema, {
    snapshotId: row.id,
    kind: KINDS[row.kind],
    turnNumber: row.turnNumber ?? 0,
    turnKey: row.turnKey ?? "",
    name: nameOf(row, more.prefix),
    outcome: row.outcome === null ? WireOutcome.UNSPECIFIED : OUTCOMES[row.outcome],
    createdAt: timestampFromMs(row.createdAtMs),
    usedBytes: BigInt(more.stored?.usedBytes ?? 0),
    referencedBytes: BigInt(more.stored?.referencedBytes ?? 0),
    parentSnapshotId: row.parent ?? "",
    generation: row.generation,
    head: more.headParent === row.id,
  });
}

/** What people call it: a turn by its number, a named one by its name. */
function nameOf({ kind, turnNumber, title, toolCallId }: SnapshotRow, prefix: string): string {
  if (turnNumber !== null) return `${prefix}-${String(turnNumber).padStart(4, "0")}`;
  return title ?? (toolCallId === null ? kind : `tool-${toolCallId}`);
}

export function toWireResult(callId: string, { result, from }: LedgerAnswer): ExecuteToolResponse {
  const count = (output: { readonly totalBytes: number; readonly truncatedBytes: number }) => ({
    totalBytes: BigInt(output.totalBytes),
    truncatedBytes: BigInt(output.truncatedBytes),
  });
  const init: MessageInitShape<typeof ExecuteToolResponseSchema> = {
    toolCallId: callId,
    content: result.content,
    blocks: (result.blocks ?? []).map((block) => ({
      block:
        block.kind === "text"
          ? { case: "text", value: { text: block.text } }
          : { case: "image", value: { data: Buffer.from(block.base64, "base64"), mediaType: block.mediaType } },
    })),
    isError: result.isError,
    exitReason: EXITS[result.exitReason],
    stdout: count(result.stdout),
    stderr: count(result.stderr),
    duration: durationFromMs(result.durationMs),
    tier: result.tier,
    generation: result.generation,
    replayed: from === "store",
    snapshotId: result.snapshotId ?? "",
    contentDropped: result.contentDropped ?? false,
  };
  return create(ExecuteToolResponseSchema, result.exitCode === null ? init : { ...init, exitCode: result.exitCode });
}

export function toWireTemplate(base: BaseInfo, latest: "latest" | "older"): Template {
  return create(TemplateSchema, {
    name: base.name,
    digest: base.digest,
    createdAt: timestampFromMs(base.createdAtMs),
    sizeBytes: BigInt(base.referencedBytes),
    latest: latest === "latest",
  });
}

/** What the capabilities of a host follow from. */
export interface CapabilitySource {
  readonly storage: Pick<Storage, "capabilities" | "kind">;
  readonly runtime: Pick<Runtime, "isolation" | "kind" | "pausePreservesProcesses">;
  /** 0 is no limit. */
  readonly maxSessions: number;
}

/** What the configured backends can do; what a later part brings is false until it is there. */
export function toWireCapabilities(host: CapabilitySource): Capabilities {
  const snapshots = host.storage.capabilities.snapshots === "supported";
  return create(CapabilitiesSchema, {
    snapshots,
    rollback: snapshots,
    pause: true,
    launchProcess: true,
    deepPause: false,
    pausePreservesProcesses: host.runtime.pausePreservesProcesses === "yes",
    concurrentSandboxes: host.maxSessions,
    tierRouting: host.runtime.isolation === "sandboxed",
    streamingProgress: true,
    fork: snapshots,
    storage: host.storage.kind,
    runtime: host.runtime.kind,
  });
}
