import { SandboxError } from "@turnbox/core";
import {
  type Snapshot as WireSnapshot,
  SnapshotKind as WireKind,
  TurnOutcome,
} from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { toNumber } from "../wire/number.ts";
import { toOptional } from "../wire/text.ts";
import { toDateOrEpoch } from "../wire/time.ts";
import type { Snapshot, SnapshotKind } from "./snapshot.ts";

export const WIRE_KINDS = {
  turn: WireKind.TURN,
  named: WireKind.NAMED,
  tool: WireKind.TOOL,
  undo: WireKind.UNDO,
} as const satisfies Record<SnapshotKind, WireKind>;

const KINDS: ReadonlyMap<WireKind, SnapshotKind> = new Map(
  Object.entries(WIRE_KINDS).map(([kind, wire]) => [wire, kind as SnapshotKind]),
);

export function toSnapshot(snapshot: WireSnapshot | undefined): Snapshot {
  if (snapshot === undefined) throw new SandboxError("INTERNAL", "the host's answer has no snapshot");
  const kind = KINDS.get(snapshot.kind) ?? "named";
  return {
    id: snapshot.snapshotId,
    kind,
    turnNumber: snapshot.turnNumber === 0 ? undefined : snapshot.turnNumber,
    turnKey: toOptional(snapshot.turnKey),
    name: toOptional(snapshot.name),
    outcome: kind === "turn" ? outcomeOf(snapshot.outcome) : undefined,
    createdAt: toDateOrEpoch(snapshot.createdAt),
    usedBytes: toNumber(snapshot.usedBytes),
    referencedBytes: toNumber(snapshot.referencedBytes),
    parentId: toOptional(snapshot.parentSnapshotId),
    generation: snapshot.generation,
    head: snapshot.head,
  };
}

const outcomeOf = (outcome: TurnOutcome): "succeeded" | "failed" =>
  outcome === TurnOutcome.FAILED ? "failed" : "succeeded";
