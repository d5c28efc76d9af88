import type { Clock, Principal } from "@turnbox/core";
import type { Records } from "../record/records.ts";
import type { ReceiptRow } from "../record/row.ts";
import type { CrashPointHook } from "../session/crash-point.ts";
import { assertGeneration } from "../session/generation.ts";
import type { KeyedRequest, Receipts } from "../session/receipts.ts";
import type { Registry } from "../session/registry.ts";
import { DESTROYED, type Session } from "../session/session.ts";
import type { Removals } from "./remove.ts";

/**
 * Ends a session in any phase. It returns when the tombstone is durable; from then on the session is only removed. Done
 * twice, or by two callers at once, it is done once. The receipt of a keyed request is durable with the tombstone.
 */
export type DestroySession = (session: Session, receipt?: ReceiptRow) => Promise<void>;

export function createDestroySession(deps: {
  readonly records: Records;
  readonly removals: Pick<Removals, "remove">;
  readonly clock: Clock;
  readonly crashPoint: CrashPointHook;
}): DestroySession {
  return async (session, receipt) => {
    if (session.row.phase.kind === "destroying") {
      // The destroy that came first removes it, and may have done so: nothing of it is changed any more.
      if (receipt !== undefined) await deps.records.call("keepReceipt", receipt);
      return;
    }
    await session.commit(
      (row) =>
        row.phase.kind === "destroying" ? row : { ...row, phase: { kind: "destroying", sinceMs: deps.clock.nowMs() } },
      receipt === undefined ? {} : { receipt },
    );
    await deps.crashPoint("destroy.tombstoned");
    // All work for the session stops; the container, and with it every tool, ends in the removal.
    session.gate.close("SESSION_DESTROYING");
    session.lifetime.abort(DESTROYED);
    deps.removals.remove(session);
  };
}

export interface DestroyRequest {
  readonly caller: Principal;
  readonly sessionId: string;
  readonly idempotencyKey: string;
  /** The whole request in a canonical form, for the idempotency key. */
  readonly payload: string;
  readonly expectedGeneration: number | undefined;
}

/** Destroys the caller's session once for the key of the request, also if there is no such session when it comes again. */
export type DestroyOnRequest = (request: DestroyRequest) => Promise<void>;

export function createDestroyOnRequest(deps: {
  readonly registry: Pick<Registry, "get">;
  readonly receipts: Pick<Receipts, "once">;
  readonly destroySession: DestroySession;
}): DestroyOnRequest {
  return async ({ caller, sessionId, idempotencyKey: key, payload, expectedGeneration }) => {
    const keyed: KeyedRequest = { scope: `${caller.tenant}/DestroySession`, key, payload };
    await deps.receipts.once<null>(keyed, async (receiptOf) => {
      const session = deps.registry.get(sessionId, caller);
      assertGeneration(session, expectedGeneration);
      await deps.destroySession(session, receiptOf(null));
      return null;
    });
  };
}
