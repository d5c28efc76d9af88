import type { Snapshot } from "@turnbox/client";

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
  const { id, kind, turnNumber, turnKey, name, outcome, createdAt, parentId, generation, head } = snapshot;
  return {
    snapshotId: id,
    kind,
    turnNumber: turnNumber ?? null,
    turnKey: turnKey ?? "",
    name: name ?? "",
    outcome: outcome ?? null,
    createdAt: createdAt.toISOString(),
    usedBytes: snapshot.usedBytes,
    referencedBytes: snapshot.referencedBytes,
    parentSnapshotId: parentId ?? null,
    generation,
    head,
  };
}
