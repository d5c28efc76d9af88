import type { Journals } from "./journals.ts";
import type {
  BaseInfo,
  BaseRef,
  Head,
  HeadRef,
  HeadSpec,
  Marks,
  SessionBound,
  SessionInventory,
  SessionPresence,
  SessionSpec,
  SnapshotInfo,
  SnapshotRef,
  StorageCall,
  StorageCapabilities,
  StorageStatus,
} from "./model.ts";
import type { Prewarm } from "./prewarm.ts";
import type { Streams } from "./streams.ts";
import type { Views } from "./views.ts";

export type * from "./model.ts";
export type { Views } from "./views.ts";

/**
 * Holds the files of sessions: makes them from templates, keeps their past as snapshots, and goes back to it or branches
 * from it in one step, however much was written.
 *
 * # Words
 *
 * - A _base_ is one version of a template: a root filesystem that never changes. It is named by template and digest.
 * - A _session_ is named by its _token_. It has one or more heads and the snapshots that were taken of them.
 * - A _head_ is a writable copy of an origin, mounted as a directory, and named by session and _generation_. One head at a
 *   time is live; the others are kept, unmounted, for the snapshots that hang on them.
 * - An _origin_ is what a head is a copy of: a base, or a snapshot of the same or of another session.
 * - To _seal_ a head is to take a _snapshot_ of it: its files at that moment, read-only. Snapshot B _descends_ from A if it
 *   was taken later on the same head, or on a head whose origin is A or descends from A.
 * - _Marks_ are facts about a session, a head or a snapshot that are stored with it. The storage does not read them; from
 *   them alone the host rebuilds its records if those are lost.
 *
 * # Life cycle
 *
 * `open` comes first, once for each start and again whenever `status` is `unavailable`. A session lives from
 * `createSession`, which makes the head of generation 1, to `destroySession`. In between, a head is sealed any number of
 * times, and `createHead` makes the next one from a snapshot. A session that others were made from cannot be destroyed;
 * `shrinkSession` leaves only what they stand on, and `destroySession` succeeds once they are gone. `collectHeads` drops
 * heads that nothing depends on any more.
 *
 * Names are given by the caller, are opaque, and nothing is ever renamed. Every mutation is idempotent: done twice it
 * returns as if done once, so a caller that does not know the outcome simply asks again.
 *
 * # Example: two turns, a rollback to the first, a fork
 *
 *     const base = { name: "debian", digest: "4f2a" };
 *     await storage.open(call);
 *     await storage.createBase(base, (directory) => unpack(archive, directory), call);
 *
 *     // The session begins: `first.path` is the sandbox's root.
 *     const first = await storage.createSession({ token: "t1", origin: { kind: "base", base }, marks: {} }, call);
 *     // ... the sandbox writes below first.path ...
 *     await storage.seal(first, "s1", { turn_number: "1" }, call);
 *     // ... it writes more ...
 *     await storage.seal(first, "s2", { turn_number: "2" }, call);
 *
 *     // Rollback: a second head continues from turn 1. s2 stays, on the first head, and can be gone back to.
 *     const origin = { kind: "snapshot", snapshot: { token: "t1", name: "s1" } } as const;
 *     const second = await storage.createHead({ token: "t1", generation: 2, origin, marks: {} }, call);
 *     await storage.unmountHead(first, call);
 *
 *     // Fork: another session from the same snapshot. From now on t1 can be shrunk, not destroyed.
 *     await storage.createSession({ token: "t2", origin, marks: {} }, call);
 *
 *     // Retention: without s2 nothing needs the first head but s1, which the second one takes over.
 *     await storage.destroySnapshot({ token: "t1", name: "s2" }, call);
 *     await storage.collectHeads(second, call); // [{ token: "t1", generation: 1 }]
 *
 * # Failures
 *
 * They are `SandboxError`s: `STORAGE_UNAVAILABLE`, `POOL_FULL`, `SNAPSHOT_SPACE_EXHAUSTED`, `TEMPLATE_NOT_FOUND`,
 * `TEMPLATE_IN_USE`, `SNAPSHOT_NOT_FOUND`, `SNAPSHOT_IN_USE`, `SESSION_NOT_FOUND`, and `SNAPSHOTS_NOT_AVAILABLE` for
 * everything about snapshots if they are unsupported.
 *
 * What looks at the past is in `Views`, what counts bytes in `Usage`, directories for output in `Journals`, what only serves
 * speed in the optional `Prewarm`, and what takes snapshots to other machines in the optional `Streams`.
 */
export interface Storage extends Views, Usage, Journals {
  readonly kind: "zfs" | "local-disk" | "fake";
  readonly capabilities: StorageCapabilities;
  /** Absent if this storage has nothing to prepare. */
  readonly prewarm?: Prewarm;
  /** Absent if this storage cannot send snapshots or take them in. */
  readonly streams?: Streams;

  /**
   * Makes what is missing once, reopens what is there, heals what can be healed. Call before anything else, and again at
   * any time, above all when `status` is `unavailable`: if all is well, nothing is disturbed. While it heals, other
   * operations, also those under way, fail with `STORAGE_UNAVAILABLE`; if it fails halfway, until it has succeeded.
   *
   * `remounted` are the heads that had to be mounted again because the storage daemon had died. Containers that were
   * started on them hold dead files from then on, and what was written last may be lost: the caller ends those containers.
   * A head is reported until an `open` that names it has succeeded, also by another instance. `onRemounted` is called
   * with them before they are forgotten; if it fails, so does `open`, and the next one reports them again.
   */
  open(
    call: StorageCall & { readonly onRemounted?: (heads: readonly HeadRef[]) => Promise<void> },
  ): Promise<{ readonly remounted: readonly HeadRef[] }>;
  /**
   * Whether the storage serves, mounts included. Returns within seconds whatever hangs: `unavailable` if the daemon is
   * dead or silent, if a mount does not answer, and if the signal's own timeout passes first.
   */
  status(call: StorageCall): Promise<StorageStatus>;

  /**
   * Makes a template version visible in one step: `fill` writes the root filesystem into an empty directory; only when it
   * has returned does the version exist. A version that exists is returned without calling `fill`; half-made ones are
   * made again.
   */
  createBase(base: BaseRef, fill: (directory: string) => Promise<void>, call: StorageCall): Promise<BaseInfo>;
  /** All complete versions, oldest first. */
  listBases(call: StorageCall): Promise<readonly BaseInfo[]>;
  /** Refuses with `TEMPLATE_IN_USE` while a session depends on it. */
  destroyBase(base: BaseRef, call: StorageCall): Promise<void>;

  /**
   * Makes the session and its first head (generation 1), mounted. A session of this token that was made from
   * another origin stays as it is, and is `STORAGE_UNAVAILABLE`.
   */
  createSession(spec: SessionSpec, call: StorageCall): Promise<Head>;
  /**
   * Makes a further head of an existing session, mounted. One of this generation from another origin is replaced if
   * it is unmounted and has no snapshots, as a call that was cut off leaves it; otherwise it stays as it is, and is
   * `STORAGE_UNAVAILABLE`. A storage without mounts always keeps it.
   */
  createHead(spec: HeadSpec, call: StorageCall): Promise<Head>;
  /**
   * Gives a session that has only its first head, and nothing written to it, another allowance: from then on it is as if it
   * had been made with it. Returns the head and its bound.
   */
  boundSession(bound: SessionBound, call: StorageCall): Promise<Head>;
  /** Mounts the head if it is not. A mount whose daemon has died is `STORAGE_UNAVAILABLE`. */
  mountHead(head: HeadRef, call: StorageCall): Promise<Head>;
  /**
   * Unmounts the head if it is mounted, also if its daemon has died. A head in use stays mounted and is
   * `STORAGE_UNAVAILABLE`.
   */
  unmountHead(head: HeadRef, call: StorageCall): Promise<void>;
  /** Destroys one head with its snapshots. `SNAPSHOT_IN_USE` while another head or session was cloned from them. */
  destroyHead(head: HeadRef, call: StorageCall): Promise<void>;
  /**
   * Destroys everything of the session. A session that is not there is gone. `SNAPSHOT_IN_USE`,
   * with nothing touched, while another session was cloned from it.
   */
  destroySession(token: string, call: StorageCall): Promise<void>;
  /**
   * Destroys what it can of a session that is over but that others were cloned from: all heads are unmounted, and every
   * head and snapshot that nothing outside depends on goes. A session that is not there is gone. Idempotent.
   */
  shrinkSession(token: string, call: StorageCall): Promise<void>;
  /**
   * Ends the session's heads that hold no snapshot which only they lead to. If a head that stays was cloned from one
   * of them, it takes over the snapshots up to that point. Never the kept head, never one that is in use; snapshots are
   * moved, none is destroyed. Returns the heads that went. Idempotent.
   */
  collectHeads(keep: HeadRef, call: StorageCall): Promise<readonly HeadRef[]>;

  /**
   * Flushes what the sandbox has written, mapped memory included, and takes a snapshot of the head. The same name again
   * leaves the snapshot that is there as it is.
   */
  seal(head: HeadRef, name: string, marks: Marks, call: StorageCall): Promise<void>;
  /** All snapshots of the session's heads, oldest first. */
  listSnapshots(token: string, call: StorageCall): Promise<readonly SnapshotInfo[]>;
  /** A snapshot that is not there is gone; one that something was cloned from, or that is being sent, is `SNAPSHOT_IN_USE`. */
  destroySnapshot(snapshot: SnapshotRef, call: StorageCall): Promise<void>;

  /** Sets marks of the session; others stay as they are. */
  markSession(token: string, marks: Marks, call: StorageCall): Promise<void>;

  /** Every session that carries this storage's mark. What is not ours is never listed. Removes what views have left behind. */
  presence(call: StorageCall): Promise<readonly SessionPresence[]>;
  /** The same sessions with their marks, which takes several times as long if there are many. */
  inventory(call: StorageCall): Promise<readonly SessionInventory[]>;

  /** Brings everything that was written so far, by sandboxes too, to the disk, so that it survives a loss of power. */
  flush(call: StorageCall): Promise<void>;

  /** Destroys all of this storage, for a home that is being removed. Needs no `open`; what is not there is gone. */
  destroyAll(call: StorageCall): Promise<void>;
}

/** How much space sessions use. Backends account for recent writes some seconds later. */
export interface Usage {
  /** Bytes that the session's heads and snapshots use in the pool, without those of its origin. */
  usedBytes(token: string, call: StorageCall): Promise<number>;
  /** Bytes that a head refers to, its origin's included. */
  headBytes(head: HeadRef, call: StorageCall): Promise<number>;
  /** The result of `usedBytes` for all sessions at once, by token. */
  usedBytesOfAll(call: StorageCall): Promise<ReadonlyMap<string, number>>;
}
