import type { ContainerLimits } from "../runtime/runtime.ts";
import type { BaseRef } from "../storage/storage.ts";

/** What a session is doing, with the data that only this phase has. */
export type Phase =
  | { readonly kind: "creating" }
  | { readonly kind: "active" }
  | { readonly kind: "paused" }
  | { readonly kind: "destroying"; readonly sinceMs: number }
  | { readonly kind: "failed"; readonly message: string };

/** All that is known of a session over restarts. */
export interface SessionRow {
  readonly id: string;
  readonly tenant: string;
  /** The session's opaque name on this host: of datasets, mounts and marks. It never changes. */
  readonly token: string;
  readonly phase: Phase;
  /** Which incarnation is live. Raised by a rollback and by the loss of a container; never lowered. */
  readonly generation: number;
  /** The generation that the mounted head was made in. */
  readonly headGeneration: number;
  readonly base: BaseRef;
  readonly createdAtMs: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ContainerLimits;
  readonly quotaBytes: number | null;
  readonly refquotaBytes: number | null;
  /** The resident container, written before it is booted. */
  readonly container: string | null;
  /** The number of the last sealed turn; a number is never used twice. */
  readonly turnCounter: number;
  /** The snapshot that the head continues from; the parent of the next one. */
  readonly parentSnapshot: string | null;
}

export type SnapshotKind = "turn" | "named" | "tool" | "undo";
export type TurnOutcome = "succeeded" | "failed";

export interface SnapshotRow {
  /** What users see; opaque. */
  readonly id: string;
  readonly token: string;
  /** The name in the storage, unique in the pool. */
  readonly name: string;
  readonly kind: SnapshotKind;
  readonly turnNumber: number | null;
  readonly turnKey: string | null;
  readonly outcome: TurnOutcome | null;
  readonly createdAtMs: number;
  readonly parent: string | null;
  /** The generation that was live when it was taken. */
  readonly generation: number;
}

/** A multi-step operation that has begun. It is removed in the same commit that makes the operation's result durable. */
export type IntentRow = SealIntent | RollbackIntent;

export interface SealIntent {
  readonly kind: "seal";
  readonly token: string;
  readonly snapshot: SnapshotRow;
  /** What a caller that comes back by its key is answered with. */
  readonly receipt: ReceiptRow | null;
}

export interface RollbackIntent {
  readonly kind: "rollback";
  readonly token: string;
  /** Of the head that is being made. */
  readonly generation: number;
  readonly undo: SnapshotRow;
  /** The container that is booted on the new head. */
  readonly container: string;
}

/** The durable answer to an idempotent request. */
export interface ReceiptRow {
  /** Tenant and operation; keys of different operations never meet. */
  readonly scope: string;
  readonly key: string;
  /** Hash of the request; the same key with another hash is a conflict. */
  readonly payloadHash: string;
  readonly result: string;
  readonly atMs: number;
}

/** An effectful tool call: `started` before the effect, `finished` before the answer. */
export interface CallRow {
  readonly token: string;
  readonly callId: string;
  readonly payloadHash: string;
  readonly generation: number;
  readonly status: "started" | "finished";
  readonly result: string | null;
  readonly atMs: number;
}
