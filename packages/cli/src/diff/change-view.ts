import type { FileChange } from "@turnbox/client";

export type ChangeWord = FileChange["kind"];

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

export const toChangeView = (change: FileChange): ChangeView => ({
  ...change,
  oldPath: change.oldPath ?? null,
  unifiedDiff: change.unifiedDiff ?? null,
});
