import type { CallOptions } from "../call.ts";

/** Why a snapshot was taken: at the end of a turn, by name, after a tool call, or before a rollback. */
export type SnapshotKind = "turn" | "named" | "tool" | "undo";

/** The files of a sandbox at a moment. */
export interface Snapshot {
  readonly id: string;
  readonly kind: SnapshotKind;
  /** Of a turn. */
  readonly turnNumber: number | undefined;
  readonly turnKey: string | undefined;
  readonly name: string | undefined;
  readonly outcome: "succeeded" | "failed" | undefined;
  readonly createdAt: Date;
  readonly usedBytes: number;
  readonly referencedBytes: number;
  readonly parentId: string | undefined;
  readonly generation: number;
  /** The sandbox's files continue from it now. */
  readonly head: boolean;
}

/** Which snapshots. */
export interface SnapshotFilter extends CallOptions {
  readonly kinds?: readonly SnapshotKind[];
}

/** How a turn is sealed. */
export interface TurnOptions extends CallOptions {
  /** The caller's name for the turn, and what makes repeats one call. Made by the client unless given. */
  readonly key?: string;
  readonly outcome?: "succeeded" | "failed";
  readonly expectedGeneration?: number;
}

/** A sealed turn. */
export interface Turn {
  readonly number: number;
  /** Undefined if the host's storage has no snapshots: then turns are only counted. */
  readonly snapshotId: string | undefined;
  /** Nothing had changed, and the last snapshot is the answer. */
  readonly unchanged: boolean;
  readonly generation: number;
  readonly spaceUsedBytes: number;
  readonly snapshot: Snapshot | undefined;
}
