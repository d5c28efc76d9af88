import type { Records } from "../record/records.ts";
import type { SnapshotKind, SnapshotRow } from "../record/row.ts";
import type { Session } from "../session/session.ts";
import type { SnapshotInfo, Storage } from "../storage/storage.ts";

/** A snapshot on record, with what the storage says of it. */
export interface ListedSnapshot {
  readonly row: SnapshotRow;
  /** Absent if the storage has not got it, or has no snapshots. */
  readonly stored?: SnapshotInfo;
}

/** The snapshots of a session of these kinds; an empty set means all. */
export type ListSnapshots = (
  session: Session,
  kinds: ReadonlySet<SnapshotKind>,
  call: { readonly signal: AbortSignal },
) => Promise<readonly ListedSnapshot[]>;

export function createListSnapshots(deps: {
  readonly records: Pick<Records, "call">;
  readonly storage: Pick<Storage, "capabilities" | "listSnapshots">;
}): ListSnapshots {
  const { records, storage } = deps;
  return async ({ row: { token } }, kinds, call) => {
    const [rows, stored] = await Promise.all([
      records.call("listSnapshots", token),
      storage.capabilities.snapshots === "supported" ? storage.listSnapshots(token, call) : [],
    ]);
    const byName = new Map(stored.map((info) => [info.name, info]));
    return rows
      .filter(({ kind }) => kinds.size === 0 || kinds.has(kind))
      .map((row) => {
        const info = byName.get(row.name);
        return info === undefined ? { row } : { row, stored: info };
      });
  };
}
