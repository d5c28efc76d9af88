import type { Clock } from "@turnbox/core";
import type { Records } from "../record/records.ts";
import type { ReceiptRow } from "../record/row.ts";
import type { CrashPointHook } from "../session/crash-point.ts";
import { DESTROYED, type Session } from "../session/session.ts";
import type { Removals } from "./remove.ts";

/**
 * Ends a session in any phase. It answers when the tombstone is durable; from then on the session is only removed. Done
 * twice, or by two callers at once, it is done once. The receipt of a keyed request is durable with the tombstone.
 */
export type DestroySession = (session: Session, receipt?: ReceiptRow) => Promise<void>;

export function createDestroySession(deps: {
  readonly records: Records;
  readonly removals: Removals;
  readonly clock: Clock;
  readonly crashPoint: CrashPointHook;
}): DestroySession {
  return async (session, receipt) => {
    if (session.row.phase.kind === "destroying") {
      // Whoever made it so removes it, and may have done so: nothing of it is changed any more.
      if (receipt !== undefined) await deps.records.call("keepReceipt", receipt);
      return;
    }
    await session.commit(
      (row) =>
        row.phase.kind === "destroying" ? row : { ...row, phase: { kind: "destroying", sinceMs: deps.clock.nowMs() } },
      receipt === undefined ? {} : { receipt },
    );
    await deps.crashPoint("destroy.tombstoned");
    // Whoever works for the session stops; the container, and with it every tool, ends in the removal.
    session.gate.close("SESSION_DESTROYING");
    session.lifetime.abort(DESTROYED);
    deps.removals.remove(session);
  };
}
