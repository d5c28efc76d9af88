import type { CallOptions, KeyedOptions } from "../call.ts";

/** How a sandbox goes back. */
export interface RollbackOptions extends KeyedOptions {
  readonly expectedGeneration?: number;
  /** What happens to launched processes; `stop` unless given. */
  readonly processes?: "stop" | "refuse";
  /** What happens to running tools; `refuse` unless given. */
  readonly tools?: "wait" | "refuse";
}

/** Where a rollback led. */
export interface Rollback {
  readonly generation: number;
  /** The files as they were: a rollback to it is the undo. */
  readonly undoSnapshotId: string;
}

/** Which children, and from what. */
export interface ForkOptions extends KeyedOptions {
  /** 1 to 100; 1 unless given. */
  readonly count?: number;
  /** A turn's number or a snapshot's id; the files of now unless given. */
  readonly from?: number | string;
  /** The parent's unless given. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** What is compared. */
export interface DiffOptions extends CallOptions {
  /** A turn's number or a snapshot's id. */
  readonly from: number | string;
  /** The same; now unless given. */
  readonly to?: number | string;
  /** Adds unified diffs of text files. */
  readonly text?: boolean;
  readonly maxTextBytes?: number;
  readonly path?: string;
}

/** One difference. */
export interface FileChange {
  readonly kind: "added" | "removed" | "modified" | "renamed" | "type_changed";
  readonly path: string;
  readonly oldPath: string | undefined;
  readonly oldSizeBytes: number;
  readonly newSizeBytes: number;
  readonly binary: boolean;
  readonly unifiedDiff: string | undefined;
  readonly diffTruncated: boolean;
}
