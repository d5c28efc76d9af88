import { invalidArgument, SandboxError } from "@turnbox/core";
import type { Snapshot } from "@turnbox/client";
import { ambiguous } from "@turnbox/client/internal";

/** What a snapshot can be called by. */
export type SnapshotNames = Pick<Snapshot, "id" | "kind" | "turnNumber" | "name">;

/** What every id begins with, which need not be typed. */
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
    ({ id }) => id === reference,
    (snapshot) => snapshot.turnNumber !== undefined && snapshot.turnNumber === turnNumber,
    ({ kind, name }) => kind === "named" && name === reference,
    ({ id }) => id.startsWith(reference) || id.startsWith(`${ID_PREFIX}${reference}`),
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
      matches.map(({ id }) => id),
    );
  }
  return first.id;
}

function turnNumberOf(reference: string): number | undefined {
  const digits = /^(?:#|turn-)?(\d{1,9})$/.exec(reference)?.[1];
  return digits === undefined ? undefined : Number(digits);
}
