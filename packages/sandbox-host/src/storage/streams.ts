import type { Readable } from "node:stream";
import type { BaseRef, Marks, SnapshotRef, StorageCall } from "./model.ts";

/**
 * The form of a stream. A storage takes in only streams of forms that it names in `reads`. Whatever the form, its parts carry
 * checksums, so that damage shows before a part is used (stream-frames.ts); they are no protection from forgery.
 */
export type StreamFormat = "zfs" | "fake";

/**
 * What a snapshot is an increment of: another snapshot of the session, a base, or a snapshot of the session that this one
 * was forked from. `guid` names the content of that point wherever it was received; its name there may be another one.
 */
export interface StreamParent {
  readonly guid: string;
  readonly of:
    | { readonly kind: "snapshot"; readonly snapshot: SnapshotRef }
    | { readonly kind: "base"; readonly base: BaseRef };
}

/** A snapshot as a link of the chain that its session is. */
export interface ChainLink {
  readonly name: string;
  readonly guid: string;
  /** Null if its stream would be a full one. */
  readonly parent: StreamParent | null;
}

/** A snapshot to be received. */
export interface ReceivedSnapshot {
  readonly token: string;
  /** The name that it gets here, unique in the pool. */
  readonly name: string;
  readonly guid: string;
  /** The guid of what it is an increment of; null for a full stream. */
  readonly parentGuid: string | null;
  readonly marks: Marks;
  readonly format: StreamFormat;
}

/** A session that consists of received snapshots. Its live head is made by `Storage.createHead` when all are there. */
export interface ReceivedSession {
  readonly token: string;
  /** Of the head that will be live; the outer quota follows from it. */
  readonly refquotaBytes?: number;
  /** The agent's own allowance, for want of the former. */
  readonly quotaBytes?: number;
  readonly marks: Marks;
}

/**
 * The optional third interface of a storage: it turns snapshots into streams of bytes and makes snapshots from them, on
 * this machine or on another.
 *
 * A _chain_ is all snapshots of a session, each with what it is an increment of. The guid of a snapshot is the same wherever
 * it was received, and promotions do not change it, so the chain of a session only grows or loses snapshots. One whose parent
 * was destroyed has an earlier one as its parent from then on.
 *
 * What is being sent is as if something had been cloned from it: `destroySnapshot`, `destroyHead` and `destroySession` refuse
 * with `SNAPSHOT_IN_USE`, `destroyBase` with `TEMPLATE_IN_USE`, `shrinkSession` and `collectHeads` leave it. Nothing else waits
 * for a stream, a seal above all. What is being received keeps other changes of its session waiting, and ends with its
 * signal.
 *
 * Received snapshots hang on heads of their own, which are closed to writing and not mounted, from generation 1 on; there are
 * no more of them than the session had heads where it came from, so that the live head's generation is above theirs. Content is
 * only bytes: nothing is mounted to take it in, and every head forbids devices and set-user bits.
 *
 * # Example: a session goes to another machine
 *
 *     for (const link of await here.streams.chain("t1", call)) {
 *       const stream = await here.streams.send({ token: "t1", name: link.name }, link.parent, call);
 *       // ... `stream` to the other machine, where names are given anew ...
 *     }
 *     for (const { base, guid } of bases) // those that links name as their parents
 *       if (!(await there.streams.hasBase(base, guid, call)))
 *         await there.streams.receiveBase(base, guid, (await here.streams.sendBase({ ...base, guid }, call)).stream, call);
 *     await there.streams.beginSession({ token: "t9", marks: {} }, call);
 *     for (const link of links) // parents first
 *       await there.streams.receive({ token: "t9", name: newName(), guid: link.guid, ... }, stream, call);
 *     await there.createHead({ token: "t9", generation: 7, origin: { kind: "snapshot", snapshot: last }, marks: {} }, call);
 *
 * # Failures
 *
 * As `Storage`, and `STREAM_DAMAGED` if a stream ends early, was changed, is of another form, or is of another snapshot or
 * parent than announced; `SNAPSHOT_NOT_FOUND` if the parent of a received snapshot is not there, and
 * `SNAPSHOT_SPACE_EXHAUSTED` if the session's outer quota has no room. A stream that was not taken in as a whole leaves
 * nothing. One that stands still for a minute, whichever side it waits for, fails with `STORAGE_UNAVAILABLE`; as a whole it
 * may take any time.
 */
export interface Streams {
  /** What `send` writes. */
  readonly writes: StreamFormat;
  readonly reads: readonly StreamFormat[];

  /** All snapshots of the session, parents before their children. */
  chain(token: string, call: StorageCall): Promise<readonly ChainLink[]>;
  /**
   * The bytes of a snapshot as an increment of its parent as `chain` names it, or in full if `parent` is null. The stream fails if the sender
   * does; a reader that destroys it ends the sender. The snapshot, and its parent, cannot be destroyed meanwhile.
   */
  send(snapshot: SnapshotRef, parent: StreamParent | null, call: StorageCall): Promise<Readable>;
  /** The base as a full stream, and its guid: the one of the guid that is given, else as `baseGuid`. */
  sendBase(
    base: BaseRef & { readonly guid?: string },
    call: StorageCall,
  ): Promise<{ readonly guid: string; readonly stream: Readable }>;
  /** The guid of a base that is here, as it was imported if it was, else as it was received; undefined if it is not here. */
  baseGuid(base: BaseRef, call: StorageCall): Promise<string | undefined>;

  /** Whether a base of this guid is here for `receive` to build on. */
  hasBase(base: BaseRef, guid: string, call: StorageCall): Promise<boolean>;
  /**
   * Takes in a base under its guid, beside an own one of the same digest if there is one; sessions are received on it, none is
   * created from it, and `listBases` does not show it. It goes by itself with the last session that stands on it, and at a
   * start if none does. Idempotent. The stream is destroyed when the call ends.
   */
  receiveBase(base: BaseRef, guid: string, stream: Readable, call: StorageCall): Promise<void>;
  /** Makes an empty session for `receive`. Idempotent. */
  beginSession(session: ReceivedSession, call: StorageCall): Promise<void>;
  /**
   * Takes in one snapshot. Its parent has been received into the session before, or is a base that is here. Idempotent. The
   * stream is destroyed when the call ends.
   */
  receive(snapshot: ReceivedSnapshot, stream: Readable, call: StorageCall): Promise<void>;
}
