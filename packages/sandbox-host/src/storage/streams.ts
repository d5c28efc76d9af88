import type { Readable } from "node:stream";
import type { BaseRef, Marks, SnapshotRef, StorageCall } from "./model.ts";

/** The form of a stream. A storage takes in only streams of forms that it names in `reads`. */
export type StreamFormat = "zfs";

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
  readonly quotaBytes?: number;
  /** Of the head that will be live; the outer quota follows from it. */
  readonly refquotaBytes?: number;
  readonly marks: Marks;
}

/**
 * The optional third interface of a storage: it turns snapshots into streams of bytes and makes snapshots from them, on
 * this machine or on another.
 *
 * A _chain_ is all snapshots of a session, each with what it is an increment of. The guid of a snapshot is the same wherever
 * it was received, and promotions do not change it, so the chain of a session only grows or loses snapshots.
 *
 * # Example: a session goes to another machine
 *
 *     for (const link of await here.streams.chain("t1", call)) {
 *       const stream = await here.streams.send({ token: "t1", name: link.name }, link.parent, call);
 *       // ... `stream` to the other machine, where names are given anew ...
 *     }
 *     await there.streams.beginSession({ token: "t9", marks: {} }, call);
 *     for (const link of links) // parents first
 *       await there.streams.receive({ token: "t9", name: newName(), guid: link.guid, ... }, stream, call);
 *     await there.createHead({ token: "t9", generation: 7, origin: { kind: "snapshot", snapshot: last }, marks: {} }, call);
 *
 * # Failures
 *
 * As `Storage`, and `STREAM_DAMAGED` if a stream ends early, is of another form, or makes a snapshot of another guid; and
 * `SNAPSHOT_NOT_FOUND` if the parent of a received snapshot is not there. A stream that was not taken in as a whole leaves
 * nothing.
 */
export interface Streams {
  /** What `send` writes. */
  readonly writes: StreamFormat;
  readonly reads: readonly StreamFormat[];

  /** All snapshots of the session, parents before their children. */
  chain(token: string, call: StorageCall): Promise<readonly ChainLink[]>;
  /**
   * The bytes of a snapshot as an increment of its parent, or in full if `parent` is null. The stream fails if the sender
   * does; a reader that destroys it ends the sender. The snapshot, and its parent, cannot be destroyed meanwhile.
   */
  send(snapshot: SnapshotRef, parent: StreamParent | null, call: StorageCall): Promise<Readable>;
  /** The base as a full stream, and its guid. */
  sendBase(base: BaseRef, call: StorageCall): Promise<{ readonly guid: string; readonly stream: Readable }>;
  /** The guid of a base that is here as it was imported or received; undefined if it is not. */
  baseGuid(base: BaseRef, call: StorageCall): Promise<string | undefined>;

  /** Whether a base of this guid is here for `receive` to build on. */
  hasBase(base: BaseRef, guid: string, call: StorageCall): Promise<boolean>;
  /**
   * Takes in a base under its guid, beside an own one of the same digest if there is one; sessions are received on it. It
   * goes by itself once no session stands on it.
   */
  receiveBase(base: BaseRef, guid: string, stream: Readable, call: StorageCall): Promise<void>;
  /** Makes an empty session for `receive`. Idempotent. */
  beginSession(session: ReceivedSession, call: StorageCall): Promise<void>;
  /** Takes in one snapshot. Its parent has been received into the session before, or is a base that is here. Idempotent. */
  receive(snapshot: ReceivedSnapshot, stream: Readable, call: StorageCall): Promise<void>;
}
