import { SandboxError } from "@turnbox/core";
import type { Records } from "../record/records.ts";
import type { SnapshotRow } from "../record/row.ts";
import type { Session } from "../session/session.ts";

/** The session's snapshot of this id, or `SNAPSHOT_NOT_FOUND`: another session's is not found either. */
export async function findSnapshot(records: Records, session: Session, snapshotId: string): Promise<SnapshotRow> {
  const found = await records.call("findSnapshot", snapshotId);
  if (found !== null && found.token === session.row.token) return found;
  throw new SandboxError("SNAPSHOT_NOT_FOUND", `the session has no snapshot ${JSON.stringify(snapshotId)}`, {
    metadata: { snapshotId },
  });
}
