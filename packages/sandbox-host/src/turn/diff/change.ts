/**
 * What happened to a path. Every path has at most one change: what is at the same path on both sides is `modified` or
 * `type-changed`, whatever became of the file that was there; only what has a new path and lost its old one is `renamed`.
 */
export type ChangeKind = "added" | "removed" | "modified" | "renamed" | "type-changed";

/** One difference between two trees. Paths are absolute inside; bytes that are no UTF-8 are shown as U+FFFD. */
export interface Change {
  readonly kind: ChangeKind;
  /** The later path; of something removed, the path that it had. */
  readonly path: string;
  /** Empty for all kinds but `renamed`. */
  readonly oldPath: string;
  /** Of files and links; 0 for everything else, and if it was not there. */
  readonly oldSizeBytes: number;
  readonly newSizeBytes: number;
  /** Found out only if text was asked for. */
  readonly binary: boolean;
  /** Empty if text was not asked for, or if the content is the same, is no text or is over a limit. */
  readonly unifiedDiff: string;
  /** Whether a limit kept the text away. */
  readonly diffTruncated: boolean;
}
