/** Options every operation of the port takes. Cleanup inside an adapter never uses the caller's signal. */
export interface StorageCall {
  readonly signal: AbortSignal;
}

export interface SealCall extends StorageCall {
  /** A `flushHead` that has begun: the seal waits for it in the place of one of its own. */
  readonly flushed?: Promise<void> | undefined;
  /** The snapshot is taken when this has come about, and where it fails, none is. Flushing does not wait for it. */
  readonly after?: Promise<void>;
  /** Called while the snapshot is being taken, for what can be done at the same time. */
  readonly beside?: (() => void) | undefined;
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
  /** The first head's bound itself, where it is not `quotaBytes` on top of the origin; raised to what the origin refers to. */
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

/** A point in the life of a session's files: a snapshot, or a head as it is now. */
export type Point =
  | { readonly kind: "snapshot"; readonly snapshot: SnapshotRef }
  | { readonly kind: "head"; readonly head: HeadRef };

/** How many views a storage has open at once; more wait. */
export const VIEWS_AT_ONCE = 16;

/**
 * The files of a point, read-only and unchanging. What it stands on cannot be destroyed until it is disposed; disposing
 * never throws, and what it could not remove goes at the next `open`.
 */
export interface View extends AsyncDisposable {
  readonly path: string;
  /** The snapshot that is looked at; for a head, one that goes with the view. */
  readonly snapshot: SnapshotRef;
}

/** What the storage holds for one session, found by looking, not by remembering. */
/** What there is of a session. */
export interface SessionPresence {
  readonly token: string;
  readonly heads: readonly (HeadRef & { readonly mounted: "yes" | "no" })[];
  /** Names only. */
  readonly snapshots: readonly string[];
}

/** The same and what it was marked with; snapshots are the oldest first. */
export interface SessionInventory extends SessionPresence {
  readonly marks: Marks;
  readonly heads: readonly (SessionPresence["heads"][number] & { readonly marks: Marks })[];
}

export interface JournalsSpec {
  readonly token: string;
  /** What all files there may take together. The first bound stays. */
  readonly quotaBytes: number;
}

/** Where the output of a session's processes is written to. */
export interface Journals {
  readonly path: string;
  /** Who may touch the directory: everybody, or only a process that may hang, as with a head. */
  readonly touch: "directly" | "by_worker";
}

export interface StorageStatus {
  /** `online` and `degraded` serve; every other state of the pool is `unavailable`. */
  readonly state: "online" | "degraded" | "unavailable";
  /** The state in the backend's own word, for people. */
  readonly detail: string;
  readonly sizeBytes: number;
  readonly usedBytes: number;
  readonly availableBytes: number;
  /** Absent where the backend does not know it. */
  readonly fragmentationPercent?: number;
}

export interface StorageCapabilities {
  readonly snapshots: "supported" | "unsupported";
}

/**
 * Where the files of sessions live.
 *
 * Names are opaque and nothing is ever renamed. Every mutation is idempotent: done twice it answers as done once, so an
 * operation whose outcome is unknown is simply asked for again. Failures are `SandboxError`s: `STORAGE_UNAVAILABLE`,
 * `POOL_FULL`, `SNAPSHOT_SPACE_EXHAUSTED`, `TEMPLATE_NOT_FOUND`, `TEMPLATE_IN_USE`, `SNAPSHOT_NOT_FOUND`, `SNAPSHOT_IN_USE`,
 * `SESSION_NOT_FOUND`, and `SNAPSHOTS_NOT_AVAILABLE` for everything about snapshots where they are unsupported.
 */
export interface Storage {
  readonly kind: "zfs" | "local-disk" | "fake";
  readonly capabilities: StorageCapabilities;

  /**
   * Makes what is missing once, reopens what is there, heals what can be healed. Call before anything else, and again at
   * any time, above all when `status` is `unavailable`: where all is well, nothing is disturbed. While it heals, other
   * operations, also those under way, fail with `STORAGE_UNAVAILABLE`; where it fails halfway, until it has succeeded.
   *
   * `remounted` are the heads that had to be mounted again because the storage daemon had died. Containers that were
   * started on them hold dead files for ever, and what was written last may be lost: the caller ends those containers.
   * A head is told until an `open` that names it has succeeded, also by another instance. `onRemounted` is called with
   * them before they are forgotten; where it fails, so does `open`, and the next one tells them again.
   */
  open(
    call: StorageCall & { readonly onRemounted?: (heads: readonly HeadRef[]) => Promise<void> },
  ): Promise<{ readonly remounted: readonly HeadRef[] }>;
  /**
   * Looks whether the storage serves, mounts included, and answers within seconds whatever hangs: `unavailable` where the
   * daemon is dead or silent, where a mount does not answer, and where the signal's own timeout passes first.
   */
  status(call: StorageCall): Promise<StorageStatus>;

  /**
   * Makes a template version visible in one step: `fill` writes the root filesystem into an empty directory; only when it
   * has returned does the version exist. A version that exists is answered without calling `fill`; half-made ones are
   * made again.
   */
  createBase(base: BaseRef, fill: (directory: string) => Promise<void>, call: StorageCall): Promise<BaseInfo>;
  /** All complete versions, oldest first. */
  listBases(call: StorageCall): Promise<readonly BaseInfo[]>;
  /** Refuses with `TEMPLATE_IN_USE` while a session depends on it. */
  destroyBase(base: BaseRef, call: StorageCall): Promise<void>;

  /**
   * Makes the session's place and its first head (generation 1), mounted. A session of this token that was made from
   * another origin stays as it is, and is `STORAGE_UNAVAILABLE`.
   */
  createSession(spec: SessionSpec, call: StorageCall): Promise<Head>;
  /**
   * Makes a further head of an existing session, mounted. One of this generation from another origin is replaced where
   * it is unmounted and has no snapshots, as a call that was cut off leaves it; otherwise it stays as it is, and is
   * `STORAGE_UNAVAILABLE`. Where there are no mounts, it always stays.
   */
  createHead(spec: HeadSpec, call: StorageCall): Promise<Head>;
  /**
   * Gives a session that has only its first head, and nothing written to it, another allowance: from then on it is as if it
   * had been made with it. Answers with the head and its bound.
   */
  boundSession(bound: SessionBound, call: StorageCall): Promise<Head>;
  /** Mounts the head if it is not; answers where. A mount whose daemon has died is `STORAGE_UNAVAILABLE`. */
  mountHead(head: HeadRef, call: StorageCall): Promise<Head>;
  /**
   * Unmounts the head if it is mounted, also where its daemon has died. A head in use stays mounted and is
   * `STORAGE_UNAVAILABLE`.
   */
  unmountHead(head: HeadRef, call: StorageCall): Promise<void>;
  /** Destroys one head with its snapshots. `SNAPSHOT_IN_USE` while another head or session was cloned from them. */
  destroyHead(head: HeadRef, call: StorageCall): Promise<void>;
  /**
   * Destroys everything of the session; answers when it is gone. A session that is not there is gone. `SNAPSHOT_IN_USE`,
   * with nothing touched, while another session was cloned from it.
   */
  destroySession(token: string, call: StorageCall): Promise<void>;
  /**
   * Destroys what it can of a session that is over but that others were cloned from: all heads are unmounted, and every
   * head and snapshot that nothing outside depends on goes. A session that is not there is gone. Idempotent.
   */
  shrinkSession(token: string, call: StorageCall): Promise<void>;
  /**
   * Ends the session's heads that hold no snapshot which only they lead to. Where a head that stays was cloned from one
   * of them, it takes over the snapshots up to that point. Never the kept head, never one that is in use; snapshots are
   * moved, none is destroyed. Answers with the heads that went. Idempotent.
   */
  collectHeads(keep: HeadRef, call: StorageCall): Promise<readonly HeadRef[]>;

  /** Writes out what the sandbox has written to a head, mapped memory included. */
  flushHead(head: HeadRef, call: StorageCall): Promise<void>;
  /**
   * Flushes what the sandbox has written, mapped memory included, and takes a snapshot of the head. The same name again
   * leaves the snapshot that is there as it is.
   */
  seal(head: HeadRef, name: string, marks: Marks, call: SealCall): Promise<void>;
  /** All snapshots of the session's heads, oldest first. */
  listSnapshots(token: string, call: StorageCall): Promise<readonly SnapshotInfo[]>;
  /** A snapshot that is not there is gone; one that something was cloned from is `SNAPSHOT_IN_USE`. */
  destroySnapshot(snapshot: SnapshotRef, call: StorageCall): Promise<void>;

  /**
   * Whether no file, directory or attribute was written between two snapshots on one line: `since` came before
   * `snapshot` on the same head, or on one that this head came from by cloning. False where they are not on one line.
   * Exact, and cheap also where much changed; cheapest where both are on the head that the caller names.
   */
  isUnchanged(
    snapshot: SnapshotRef,
    since: SnapshotRef,
    call: StorageCall & { readonly head?: HeadRef },
  ): Promise<boolean>;
  /** Sixteen at once; whoever wants one more waits. */
  openView(point: Point, call: StorageCall): Promise<View>;
  /**
   * Paths, absolute inside, that may differ between a snapshot and one that came later on the same line, at least all
   * that do, where a renamed directory stands for all below it and one name of a file for its others; null where the
   * backend has no way to tell but looking at everything.
   */
  changedPaths(from: SnapshotRef, to: SnapshotRef, call: StorageCall): Promise<readonly string[] | null>;
  /** Sets marks of the session's place; others stay as they are. */
  markSession(token: string, marks: Marks, call: StorageCall): Promise<void>;

  /** Bytes the session's heads and snapshots take in the pool, its origin's own not included. */
  usedBytes(token: string, call: StorageCall): Promise<number>;
  /** Bytes that a head refers to, its origin's included. */
  headBytes(head: HeadRef, call: StorageCall): Promise<number>;
  /** What `usedBytes` answers, for all sessions at once, by token. */
  usedBytesOfAll(call: StorageCall): Promise<ReadonlyMap<string, number>>;
  /** Every session that carries this storage's mark. What is not ours is never listed. Takes away what views have left. */
  presence(call: StorageCall): Promise<readonly SessionPresence[]>;
  /** The same sessions with their marks, which takes several times as long where there are many. */
  inventory(call: StorageCall): Promise<readonly SessionInventory[]>;

  /**
   * A directory of the session that is no part of its files, for what its processes write; made where it is not there. It
   * takes no more than its bound, also while no service runs, where bounds are enforced. It goes with the session, and
   * when the session is shrunk.
   */
  openJournals(spec: JournalsSpec, call: StorageCall): Promise<Journals>;

  /** Brings everything that was written so far, by sandboxes too, to where a loss of power leaves it. */
  flush(call: StorageCall): Promise<void>;

  /** Destroys all of this storage, for a home that is being removed. Needs no `open`; what is not there is gone. */
  destroyAll(call: StorageCall): Promise<void>;
}
