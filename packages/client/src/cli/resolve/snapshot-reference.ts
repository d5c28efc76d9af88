import { invalidArgument, SandboxError } from "@turnbox/core";
import { SnapshotKind } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { ambiguous } from "../../turnbox/sandbox-reference.ts";

/** What a snapshot can be called by. */
export interface SnapshotNames {
  readonly snapshotId: string;
  readonly kind: SnapshotKind;
  /** 0 where it is not a turn. */
  readonly turnNumber: number;
  /** What a named one is called; need not be unique. */
  readonly name: string;
}

/** What every id begins with, so that nobody needs to type it. */
const ID_PREFIX = "snap-";

/** How every verb that takes a snapshot says so. */
export const SNAPSHOT_RULE = "its id, a unique prefix of it, a turn (3, '#3', turn-0003), or its name";

/**
 * The id of the one snapshot that is meant, by the first of these that fits: its id, a turn's number (`3`, `#3`,
 * `turn-0003`), the name of a named one, a prefix of an id. None is `SNAPSHOT_NOT_FOUND`; several are an error that
 * lists them.
 */
export function matchSnapshot(reference: string, snapshots: readonly SnapshotNames[]): string {
  if (reference === "" || reference === "#") throw invalidArgument("snapshot", `must be ${SNAPSHOT_RULE}`);
  const turnNumber = turnNumberOf(reference);
  const ways: readonly ((snapshot: SnapshotNames) => boolean)[] = [
    ({ snapshotId }) => snapshotId === reference,
    (snapshot) => snapshot.turnNumber > 0 && snapshot.turnNumber === turnNumber,
    ({ kind, name }) => kind === SnapshotKind.NAMED && name === reference,
    ({ snapshotId }) => snapshotId.startsWith(reference) || snapshotId.startsWith(`${ID_PREFIX}${reference}`),
  ];
  const matches = ways.map((fits) => snapshots.filter(fits)).find((found) => found.length > 0) ?? [];
  const [first, ...others] = matches;
  if (first === undefined) {
    throw new SandboxError(
      "SNAPSHOT_NOT_FOUND",
      `no snapshot has the id, the turn, the name or the beginning ${JSON.stringify(reference)}`,
      { metadata: { reference } },
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

function turnNumberOf(reference: string): number | undefined {
  const digits = /^(?:#|turn-)?(\d{1,9})$/.exec(reference)?.[1];
  return digits === undefined ? undefined : Number(digits);
}
