import type { Change } from "./change.ts";
import type { DiffFailure } from "./failure.ts";
import type { TextLimits } from "./text-diff.ts";

/** What the comparing process is asked, as JSON on its input. */
export interface DiffJob {
  /** The directories of the two trees. */
  readonly from: string;
  readonly to: string;
  /** The path to begin at, absolute inside, without a slash at its end but for the root. */
  readonly path: string;
  /** Paths that may differ, at least all that do; null for looking at everything. */
  readonly candidates: readonly string[] | null;
  /** The second until which the two have the same past, from the epoch. */
  readonly commonUntilSecond: number;
  readonly maxEntries: number;
  readonly maxChanges: number;
  /** Of the lines of the result, text not counted. */
  readonly maxPathBytes: number;
  readonly deadlineMs: number;
  readonly text: TextLimits | null;
}

/** What it writes, one per line: the changes in their order, then how it ended. */
export type DiffLine =
  | { readonly change: Change }
  | { readonly end: { readonly looks: number } }
  | { readonly failure: { readonly kind: DiffFailure["kind"]; readonly message: string } };
