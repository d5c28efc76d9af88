import { type Clock, invalidArgument } from "@turnbox/core";
import { assertGeneration } from "../session/generation.ts";
import { assertActive } from "../session/phase.ts";
import type { Receipts } from "../session/receipts.ts";
import { inOrder, type Session } from "../session/session.ts";
import { extendTiming } from "../session/timing.ts";

export interface ExtendRequest {
  readonly idempotencyKey: string;
  readonly payload: string;
  readonly expectedGeneration: number | undefined;
  /** How long it lives from now on; null is without end. */
  readonly ttlMs: number | null;
}

/**
 * Moves the end of a session that is active, paused or failed. It takes its place in the serial order, so that what was
 * asked for before is seen; a timeout looks again when it is its turn, and a session that was extended in time goes on.
 */
export type ExtendSession = (session: Session, request: ExtendRequest) => Promise<void>;

export const MAX_TTL_MS = 365 * 86_400_000;

export function createExtendSession(deps: { readonly receipts: Receipts; readonly clock: Clock }): ExtendSession {
  return async (session, request) => {
    const { ttlMs, idempotencyKey: key, payload } = request;
    if (ttlMs !== null && !(ttlMs > 0 && ttlMs <= MAX_TTL_MS))
      throw invalidArgument("ttl", "must be more than 0 s and at most 365 days");
    await deps.receipts.once<null>({ scope: `${session.row.token}/ExtendSession`, key, payload }, (receiptOf) =>
      inOrder(session, "ExtendSession", async () => {
        assertGeneration(session, request.expectedGeneration);
        const receipt = receiptOf(null);
        await session.commit(
          (row) => {
            // Checked here again, because a destroy does not wait in the serial order.
            if (row.phase.kind === "creating" || row.phase.kind === "destroying")
              assertActive(row.phase, "ExtendSession");
            return { ...row, ...extendTiming(row, ttlMs, deps.clock.nowMs()) };
          },
          receipt === undefined ? {} : { receipt },
        );
        return null;
      }),
    );
  };
}
