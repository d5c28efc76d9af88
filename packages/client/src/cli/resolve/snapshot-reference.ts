import { invalidArgument, SandboxError } from "@turnbox/core";
import { ambiguous } from "./sandbox-reference.ts";

export interface SnapshotNames {
  readonly snapshotId: string;
  /** 0 where it is not a turn. */
  readonly turnNumber: number;
}

/**
 * The id of the one snapshot that is meant: its id, a turn's number (`#3` or `3`), or a unique prefix of its id. A number
 * means the turn where there is one; ids come next.
 */
export function matchSnapshot(reference: string, snapshots: readonly SnapshotNames[]): string {
  if (reference === "" || reference === "#")
    throw invalidArgument("snapshot", "must be an id, a prefix of one, or a turn like #3");
  const exact = snapshots.find(({ snapshotId }) => snapshotId === reference);
  if (exact !== undefined) return exact.snapshotId;
  const digits = /^#?(\d{1,9})$/.exec(reference)?.[1];
  const turn =
    digits === undefined
      ? undefined
      : snapshots.find(({ turnNumber }) => turnNumber > 0 && turnNumber === Number(digits));
  if (turn !== undefined) return turn.snapshotId;
  const matches = reference.startsWith("#")
    ? []
    : snapshots.filter(({ snapshotId }) => snapshotId.startsWith(reference));
  const [first, ...others] = matches;
  if (first === undefined) {
    throw new SandboxError(
      "SNAPSHOT_NOT_FOUND",
      `no snapshot has the id, the turn or the beginning ${JSON.stringify(reference)}`,
      {
        metadata: { reference },
      },
    );
  }
  if (others.length > 0) {
    throw ambiguous(
      "snapshot",
      reference,
      matches.map(({ snapshotId }) => snapshotId),
    );
  }
  return first.snapshotId;
}
