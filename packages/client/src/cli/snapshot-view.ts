import { type Snapshot, SnapshotKind, TurnOutcome } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { enumWord, toIso } from "./sandbox-view.ts";

/** The documented shape of a snapshot under `--json`. */
export interface SnapshotView {
  readonly snapshotId: string;
  readonly kind: string;
  readonly turnNumber: number | null;
  readonly turnKey: string;
  readonly name: string;
  readonly outcome: string | null;
  readonly createdAt: string | null;
  readonly usedBytes: number;
  readonly referencedBytes: number;
  readonly parentSnapshotId: string | null;
  readonly generation: number;
  readonly head: boolean;
}

export function toSnapshotView(snapshot: Snapshot): SnapshotView {
  const { snapshotId, turnNumber, turnKey, name, generation, head } = snapshot;
  return {
    snapshotId,
    kind: enumWord(SnapshotKind[snapshot.kind]),
    turnNumber: turnNumber === 0 ? null : turnNumber,
    turnKey,
    name,
    outcome: outcomeOf(snapshot),
    createdAt: toIso(snapshot.createdAt),
    usedBytes: Number(snapshot.usedBytes),
    referencedBytes: Number(snapshot.referencedBytes),
    parentSnapshotId: snapshot.parentSnapshotId === "" ? null : snapshot.parentSnapshotId,
    generation,
    head,
  };
}

/** Only turns have one. */
export const outcomeOf = ({ kind, outcome }: Snapshot): string | null =>
  kind === SnapshotKind.TURN
    ? enumWord(TurnOutcome[outcome === TurnOutcome.UNSPECIFIED ? TurnOutcome.SUCCEEDED : outcome])
    : null;
