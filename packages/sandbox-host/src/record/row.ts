import type { NetworkPolicy } from "../network-policy/policy.ts";
import type { ContainerLimits } from "../runtime/runtime.ts";
import type { BaseRef } from "../storage/storage.ts";

/** What a session is doing, with the data that only this phase has. */
export type Phase =
  | {
      readonly kind: "creating";
      /** The boot of the machine in which it is warm, not used by a create; absent if it is not. */
      readonly readyIn?: string;
    }
  | { readonly kind: "active" }
  | {
      readonly kind: "paused";
      /** Since when the time does not count; see `Timing`. */
      readonly sinceMs: number;
      readonly cause: "request" | "timeout";
    }
  | { readonly kind: "destroying"; readonly sinceMs: number }
  | { readonly kind: "failed"; readonly message: string };

/** How long a session may live. Times are the wall clock's, so that they hold over restarts. */
export interface Timing {
  /** What a session was given, for its forks and for the life after a timeout; null is without end. */
  readonly ttlMs: number | null;
  readonly expiresAtMs: number | null;
  readonly idleTimeoutMs: number | null;
  /** What happens when a time is over. With `pause`, time while paused does not count. */
  readonly onTimeout: "pause" | "destroy";
}

/** A port inside that can be reached from outside, as long as its generation lives. */
export interface Exposure {
  readonly port: number;
  /** The port on the host. */
  readonly listenPort: number;
  readonly generation: number;
}

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
  readonly timing: Timing;
  /** Ports that it will serve. */
  readonly ports: readonly number[];
  /** Null denies everything. */
  readonly networkPolicy: NetworkPolicy | null;
  /** Addresses that ports of one generation have, on this host's advertised address. */
  readonly exposures: readonly Exposure[];
  /** The snapshot that its files came from, if not from a template. */
  readonly forkedFrom: { readonly sessionId: string; readonly snapshotId: string } | null;
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
  /** The caller's name of a named one. */
  readonly title: string | null;
  /** The call that a snapshot of kind tool was taken after. */
  readonly toolCallId: string | null;
  readonly createdAtMs: number;
  readonly parent: string | null;
  /** The generation that was live when it was taken. */
  readonly generation: number;
}

/** A multi-step operation that has begun. It is removed in the same commit that makes the operation's result durable. */
export type IntentRow = SealIntent | RollbackIntent | DropIntent;

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

/** A snapshot that is being destroyed. */
export interface DropIntent {
  readonly kind: "drop";
  readonly token: string;
  readonly snapshotId: string;
  /** Its name in the storage. */
  readonly name: string;
  readonly receipt: ReceiptRow | null;
}

/** What is left of a destroyed session that others were forked from: files without an id. It goes with the last of them. */
export interface HuskRow {
  readonly token: string;
  /** The id that the session had; it may belong to another one by now. */
  readonly sessionId: string;
  readonly tenant: string;
  readonly sinceMs: number;
}

/** The durable result of an idempotent request. */
export interface ReceiptRow {
  /** Tenant and operation; keys of different operations never meet. */
  readonly scope: string;
  readonly key: string;
  /** Hash of the request; the same key with another hash is a conflict. */
  readonly payloadHash: string;
  readonly result: string;
  readonly atMs: number;
}

/**
 * An effectful tool call: `started` before the effect, `finished` before the result is sent, `doubtful` if its effect may have
 * been lost since with the files that it wrote.
 */
export interface CallRow {
  readonly token: string;
  readonly callId: string;
  readonly payloadHash: string;
  readonly generation: number;
  /** The head that it ran on; 0 if that is not known. */
  readonly headGeneration: number;
  readonly status: "started" | "finished" | "doubtful";
  /** The result as JSON, without its content if that is in a file or was dropped. */
  readonly result: string | null;
  /** The file that holds the content of a large result. */
  readonly resultFile: string | null;
  readonly atMs: number;
}

/** Whether what a call did is in the session's present files, or a rollback discarded it, or it was cut in half. */
export type CallPosition = "live" | "discarded" | "unsure";

export interface KnownCall extends CallRow {
  readonly position: CallPosition;
}

/** How a launched process ended, if it has. `exitCode` and `signal` are known only if the service or its shell saw the end. */
export interface ProcessEnd {
  readonly reason: "exited" | "signaled" | "oom" | "sandbox_lost" | "stopped" | "terminal_closed";
  readonly exitCode: number | null;
  readonly signal: number | null;
  readonly atMs: number;
}

/** A launched process. Its environment is not kept: it may hold secrets. */
export interface ProcessRow {
  readonly token: string;
  readonly processId: string;
  /** The incarnation of the session that it belongs to, and the head that was mounted then. */
  readonly generation: number;
  readonly headGeneration: number;
  readonly container: string;
  readonly binary: string;
  readonly args: readonly string[];
  readonly terminal: { readonly columns: number; readonly rows: number } | null;
  /** The port it listens on inside and the address that leads to it, 0 and empty if none is exposed. */
  readonly port: number;
  readonly address: string;
  /** Whether its port, if it has one, was seen to accept a connection. */
  readonly ready: "yes" | "no";
  readonly startedAtMs: number;
  /** `no` until it was seen to run: one that a crash cut off before that was never returned to a caller. */
  readonly started: "yes" | "no";
  /** The key that its launch is found by again; null if the caller gave none. */
  readonly receipt: { readonly scope: string; readonly key: string } | null;
  readonly end: ProcessEnd | null;
}
