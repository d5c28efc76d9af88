import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { DropIntent, RollbackIntent, SealIntent } from "../record/row.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { SettleIntent } from "../session/intent.ts";
import type { Session } from "../session/session.ts";
import type { Storage } from "../storage/storage.ts";
import { rowWithout } from "./drop.ts";
import { rowAfter } from "./seal.ts";

interface Deps {
  readonly records: Records;
  readonly storage: Storage;
  readonly runtime: Runtime;
  readonly log: Logger;
}

/** Settling has its own time: the caller's signal may be what made it necessary. */
const SETTLE_TIMEOUT_MS = 60_000;

/** Ends operations on turns that failed or that a crash cut off. Each step may find its work done already. */
export function createSettleIntent(deps: Deps): SettleIntent {
  return async (session, intent) => {
    deps.log.warn({ sessionId: session.row.id, intent: intent.kind }, "operation was cut off, settling it");
    switch (intent.kind) {
      case "seal":
        await settleSeal(deps, session, intent);
        return;
      case "rollback":
        await undoRollback(deps, session, intent);
        return;
      case "drop":
        await settleDrop(deps, session, intent);
        return;
    }
  };
}

/**
 * A snapshot that exists is adopted together with its receipt, so that a caller that comes back by its turn key gets it;
 * one that does not exist was never taken.
 */
async function settleSeal({ records, storage }: Deps, session: Session, intent: SealIntent): Promise<void> {
  const { snapshot, receipt } = intent;
  const call = { signal: AbortSignal.timeout(SETTLE_TIMEOUT_MS) };
  const sealed = await storage.listSnapshots(intent.token, call);
  if (!sealed.some(({ name }) => name === snapshot.name)) {
    await records.call("endIntent", intent.token);
    return;
  }
  await session.commit((row) => rowAfter(row, snapshot), {
    snapshot,
    intent: "end",
    ...(receipt === null ? {} : { receipt }),
  });
}

/** A snapshot that is still there was not destroyed, and stays; the record of one that is gone goes too. */
async function settleDrop({ records, storage }: Deps, session: Session, intent: DropIntent): Promise<void> {
  const call = { signal: AbortSignal.timeout(SETTLE_TIMEOUT_MS) };
  const { token, snapshotId, receipt } = intent;
  const [row, stored] = await Promise.all([
    records.call("findSnapshot", snapshotId),
    storage.listSnapshots(token, call),
  ]);
  if (row === null || stored.some(({ name }) => name === intent.name)) {
    await records.call("endIntent", token);
    return;
  }
  await session.commit((before) => rowWithout(before, row), {
    dropped: snapshotId,
    intent: "end",
    ...(receipt === null ? {} : { receipt }),
  });
}

/** Removes what the rollback made before its commit, then thaws the old head's container. */
async function undoRollback(
  { records, storage, runtime }: Deps,
  session: Session,
  intent: RollbackIntent,
): Promise<void> {
  const call = { signal: AbortSignal.timeout(SETTLE_TIMEOUT_MS) };
  const { token, generation, undo } = intent;
  await runtime.stop(intent.container, call);
  await storage.destroyHead({ token, generation }, call);
  await storage.destroySnapshot({ token, name: undo.name }, call);
  const { container } = session.row;
  if (container !== null && (await runtime.liveness(container, call)) === "paused")
    await runtime.resume(container, call);
  await records.call("endIntent", token);
}
