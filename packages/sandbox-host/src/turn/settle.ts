import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { SettleIntent } from "../session/recover.ts";
import type { Storage } from "../storage/storage.ts";
import { undoRollback } from "./rollback.ts";

/**
 * Ends what a crash cut off. A seal whose snapshot exists is finished, so a caller that asks again by its turn key gets
 * it; one whose snapshot does not exist never happened. A rollback that was not committed is undone.
 */
export function createSettleIntent(deps: {
  readonly records: Records;
  readonly storage: Storage;
  readonly runtime: Runtime;
  readonly log: Logger;
}): SettleIntent {
  const { records, storage, log } = deps;
  return async (session, intent) => {
    log.warn({ sessionId: session.row.id, intent: intent.kind }, "an operation was cut off");
    switch (intent.kind) {
      case "seal": {
        const call = { signal: AbortSignal.timeout(SETTLE_TIMEOUT_MS) };
        const sealed = await storage.listSnapshots(intent.token, call);
        const { snapshot } = intent;
        if (!sealed.some(({ name }) => name === snapshot.name)) {
          await records.call("endIntent", intent.token);
          return;
        }
        await session.commit(
          (row) => ({
            ...row,
            turnCounter: Math.max(row.turnCounter, snapshot.turnNumber ?? 0),
            parentSnapshot: snapshot.id,
          }),
          { snapshot, intent: "end" },
        );
        return;
      }
      case "rollback": {
        const head = { token: intent.token, generation: intent.generation };
        await undoRollback(deps, { head, undo: intent.undo, oldContainer: session.row.container });
        return;
      }
    }
  };
}

const SETTLE_TIMEOUT_MS = 60_000;
