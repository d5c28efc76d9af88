/** Options every operation of the port takes. Cleanup inside an adapter never uses the caller's signal. */
export interface StorageCall {
  readonly signal: AbortSignal;
}

/** One version of a template: a read-only root filesystem. The digest is lower-case hex. */
export interface BaseRef {
  readonly name: string;
  readonly digest: string;
}

export interface BaseInfo extends BaseRef {
  readonly createdAtMs: number;
  /** Bytes that a clone of it refers to before anything is written. */
  readonly referencedBytes: number;
}

/** A head: the files of one generation of a session. `token` is the session's opaque name on this host. */
export interface HeadRef {
  readonly token: string;
  readonly generation: number;
}

/**
 * A snapshot of one of the session's heads. `name` is unique in the pool and never used twice; those of the form
 * `v-<16 letters or digits>` are kept for views.
 */
export interface SnapshotRef {
  readonly token: string;
  readonly name: string;
}

/** What a head is cloned from. */
export type Origin =
  | { readonly kind: "base"; readonly base: BaseRef }
  | { readonly kind: "snapshot"; readonly snapshot: SnapshotRef };

/**
 * Facts kept with a dataset, so that records can be rebuilt from the pool alone. Keys are lower-case letters and
 * underscores; values are any text of at most 512 bytes.
 */
export type Marks = Readonly<Record<string, string>>;

export interface HeadSpec extends HeadRef {
  readonly origin: Origin;
  /** Most bytes the head may refer to, its origin's included; absent means no bound. */
  readonly refquotaBytes?: number;
  readonly marks: Marks;
}

export interface SessionSpec {
  readonly token: string;
  readonly origin: Origin;
  /** The agent's own allowance on top of its origin; absent means no bound. */
  readonly quotaBytes?: number;
  /** The first head's bound itself, if it is not `quotaBytes` on top of the origin; raised to what the origin refers to. */
  readonly refquotaBytes?: number;
  readonly marks: Marks;
}

/** Another allowance for a session, which says what it was made from. */
export type SessionBound = Pick<SessionSpec, "token" | "origin" | "quotaBytes">;

/** A mounted head. `path` is the directory that holds the session's root filesystem. */
export interface Head extends HeadRef {
  readonly path: string;
  readonly refquotaBytes?: number;
}

export interface SnapshotInfo extends SnapshotRef {
  /** The generation of the head that the snapshot hangs on at present. */
  readonly generation: number;
  readonly createdAtMs: number;
  /** Bytes that only this snapshot holds. */
  readonly usedBytes: number;
  /** Bytes that the snapshot refers to. */
  readonly referencedBytes: number;
  readonly marks: Marks;
}

/** What there is of a session, found by looking, not by remembering. */
export interface SessionPresence {
  readonly token: string;
  readonly heads: readonly (HeadRef & { readonly mounted: "yes" | "no" })[];
  /** Names only. */
  readonly snapshots: readonly string[];
}

/** The same and its marks; snapshots are the oldest first. */
export interface SessionInventory extends SessionPresence {
  readonly marks: Marks;
  readonly heads: readonly (SessionPresence["heads"][number] & { readonly marks: Marks })[];
}

export interface StorageStatus {
  /** `online` and `degraded` serve; every other state of the pool is `unavailable`. */
  readonly state: "online" | "degraded" | "unavailable";
  /** The state in the backend's own word, for people. */
  readonly detail: string;
  readonly sizeBytes: number;
  readonly usedBytes: number;
  readonly availableBytes: number;
  /** Absent if the backend does not know it. */
  readonly fragmentationPercent?: number;
}

export interface StorageCapabilities {
  readonly snapshots: "supported" | "unsupported";
}
