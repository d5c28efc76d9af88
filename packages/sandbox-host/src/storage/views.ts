import type { HeadRef, SnapshotRef, StorageCall } from "./model.ts";

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

/** Looking at files of the past, and at what changed between two points. Refused by a storage without snapshots. */
export interface Views {
  /** At most `VIEWS_AT_ONCE` are open; a caller that asks for one more waits. */
  openView(point: Point, call: StorageCall): Promise<View>;
  /**
   * Whether no file, directory or attribute was written between two snapshots of which one descends from the other:
   * `since` came before `snapshot` on the same head, or on one that this head came from by cloning. False for any other
   * two. Exact, and cheap also if much changed.
   */
  isUnchanged(snapshot: SnapshotRef, since: SnapshotRef, call: StorageCall): Promise<boolean>;
  /**
   * Paths, absolute inside, that may differ between a snapshot and a later one that descends from it: at least all that
   * do. A renamed directory stands for all below it and one name of a file for its others. Null if the backend can only
   * find out by comparing everything.
   */
  changedPaths(from: SnapshotRef, to: SnapshotRef, call: StorageCall): Promise<readonly string[] | null>;
}
