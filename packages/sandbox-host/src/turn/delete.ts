import type { Records } from "../record/records.ts";
import type { Intents } from "../session/intent.ts";
import { assertActive } from "../session/phase.ts";
import type { Receipts } from "../session/receipts.ts";
import { inOrder, type Session } from "../session/session.ts";
import type { Storage } from "../storage/storage.ts";
import type { DropSnapshot } from "./drop.ts";
import { findSnapshot } from "./find.ts";
import { assertSnapshots } from "./snapshot.ts";

export interface DeleteRequest {
  readonly idempotencyKey: string;
  readonly payload: string;
  readonly snapshotId: string;
}

/** Deletes a snapshot of the session that nothing depends on; `SNAPSHOT_IN_USE` otherwise. */
export type DeleteSnapshot = (
  session: Session,
  request: DeleteRequest,
  call: { readonly signal: AbortSignal },
) => Promise<void>;

export function createDeleteSnapshot(deps: {
  readonly records: Records;
  readonly receipts: Receipts;
  readonly intents: Intents;
  readonly storage: Storage;
  readonly dropSnapshot: DropSnapshot;
}): DeleteSnapshot {
  const { records, receipts, intents, storage, dropSnapshot } = deps;
  return async (session, request, call) => {
    assertSnapshots(storage);
    const { idempotencyKey: key, payload } = request;
    await receipts.once<null>({ scope: `${session.row.token}/DeleteSnapshot`, key, payload }, async (receiptOf) =>
      inOrder(session, "DeleteSnapshot", async () => {
        if (session.row.phase.kind !== "paused") assertActive(session.row.phase, "DeleteSnapshot");
        await intents.settleLeftover(session);
        const snapshot = await findSnapshot(records, session, request.snapshotId);
        await dropSnapshot(session, snapshot, { ...call, receipt: receiptOf(null) });
        if (session.row.headGeneration > 1) await storage.collectHeads(session.head, call).catch(() => []);
        return null;
      }),
    );
  };
}
