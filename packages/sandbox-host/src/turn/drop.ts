import { hasReason } from "@turnbox/core";
import type { ReceiptRow, SessionRow, SnapshotRow } from "../record/row.ts";
import type { CrashPointHook } from "../session/crash-point.ts";
import type { Intents } from "../session/intent.ts";
import { changingMarks } from "../session/session-marks.ts";
import { type Session, within } from "../session/session.ts";
import type { Storage } from "../storage/storage.ts";

interface Call {
  readonly signal: AbortSignal;
}

/**
 * Destroys a snapshot, as one operation with an intent. `SNAPSHOT_IN_USE` if something was cloned from it. What
 * continued from it in the tree continues from its parent then. Call it inside the session's serial order.
 */
export type DropSnapshot = (
  session: Session,
  snapshot: SnapshotRow,
  options: Call & { readonly receipt?: ReceiptRow | undefined },
) => Promise<void>;

export function createDropSnapshot(deps: {
  readonly intents: Intents;
  readonly storage: Storage;
  readonly crashPoint: CrashPointHook;
}): DropSnapshot {
  const { intents, storage, crashPoint } = deps;

  return async (session, snapshot, options) => {
    const call = within(session, options);
    const { id: snapshotId, token, name } = snapshot;
    const receipt = options.receipt ?? null;
    await intents.run(session, { kind: "drop", token, snapshotId, name, receipt }, async (begun) => {
      await begun;
      await crashPoint("drop.begun");
      // The number of a turn outlives its snapshot even if the records are lost.
      if (snapshot.turnNumber === session.row.turnCounter)
        await storage.markSession(token, changingMarks(session.row), call);
      await destroy(session, snapshot, call);
      await crashPoint("drop.destroyed");
      await session.commit((row) => rowWithout(row, snapshot), {
        dropped: snapshotId,
        intent: "end",
        ...(receipt === null ? {} : { receipt }),
      });
      await crashPoint("drop.committed");
    });
  };

  /** Old heads that nothing depends on may be all that holds it. */
  async function destroy(session: Session, { token, name }: SnapshotRow, call: Call): Promise<void> {
    try {
      await storage.destroySnapshot({ token, name }, call);
    } catch (thrown) {
      if (!hasReason(thrown, "SNAPSHOT_IN_USE")) throw thrown;
      if ((await storage.collectHeads(session.head, call)).length === 0) throw thrown;
      await storage.destroySnapshot({ token, name }, call);
    }
  }
}

/** The session once the snapshot is gone. */
export function rowWithout(row: SessionRow, { id, parent }: Pick<SnapshotRow, "id" | "parent">): SessionRow {
  return row.parentSnapshot === id ? { ...row, parentSnapshot: parent } : row;
}
