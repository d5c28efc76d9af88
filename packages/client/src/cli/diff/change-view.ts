import { type Change, ChangeKind } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";

export type ChangeWord = "added" | "removed" | "modified" | "renamed" | "type_changed" | "unknown";

const WORDS: ReadonlyMap<ChangeKind, ChangeWord> = new Map([
  [ChangeKind.ADDED, "added"],
  [ChangeKind.REMOVED, "removed"],
  [ChangeKind.MODIFIED, "modified"],
  [ChangeKind.RENAMED, "renamed"],
  [ChangeKind.TYPE_CHANGED, "type_changed"],
]);

/** The documented shape of a difference under `--json`. */
export interface ChangeView {
  readonly kind: ChangeWord;
  readonly path: string;
  readonly oldPath: string | null;
  readonly oldSizeBytes: number;
  readonly newSizeBytes: number;
  readonly binary: boolean;
  readonly unifiedDiff: string | null;
  readonly diffTruncated: boolean;
}

export function toChangeView(change: Change): ChangeView {
  return {
    kind: WORDS.get(change.kind) ?? "unknown",
    path: change.path,
    oldPath: change.oldPath === "" ? null : change.oldPath,
    oldSizeBytes: Number(change.oldSizeBytes),
    newSizeBytes: Number(change.newSizeBytes),
    binary: change.binary,
    unifiedDiff: change.unifiedDiff === "" ? null : change.unifiedDiff,
    diffTruncated: change.diffTruncated,
  };
}
