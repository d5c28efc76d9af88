import { newSessionId, parseSessionId } from "@turnbox/core";
import type { Cordon } from "../cordon/cordon.ts";
import { findMade, type Made } from "../lifecycle/create.ts";
import type { Maker } from "../lifecycle/make.ts";
import type { Records } from "../record/records.ts";
import type { Ceilings } from "../session/ceilings.ts";
import type { Intents } from "../session/intent.ts";
import { assertActive } from "../session/phase.ts";
import type { Receipts } from "../session/receipts.ts";
import type { Registry } from "../session/registry.ts";
import { inOrder, type Session, within } from "../session/session.ts";
import type { Storage } from "../storage/storage.ts";
import { findSnapshot } from "./find.ts";
import { blueprintOf } from "./fork.ts";
import { assertSnapshots } from "./snapshot.ts";

export interface RestoreRequest {
  readonly idempotencyKey: string;
  readonly payload: string;
  readonly snapshotId: string;
  /** Empty lets the host choose. */
  readonly newSessionId: string;
}

interface Call {
  readonly signal: AbortSignal;
}

/** Makes a new session from a snapshot, with all the settings of the old one: labels, environment, bounds, ports, times. */
export type RestoreSnapshot = (session: Session, request: RestoreRequest, call: Call) => Promise<Session>;

export function createRestoreSnapshot(deps: {
  readonly registry: Registry;
  readonly records: Records;
  readonly receipts: Receipts;
  readonly intents: Intents;
  readonly storage: Storage;
  readonly maker: Maker;
  readonly cordon: Pick<Cordon, "enter">;
  readonly assertRoom: (call: Call) => Promise<void>;
  readonly ceilings: Ceilings;
}): RestoreSnapshot {
  const { registry, records, receipts, intents, maker } = deps;
  return async (session, request, caller) => {
    assertSnapshots(deps.storage);
    const id = request.newSessionId === "" ? newSessionId() : parseSessionId(request.newSessionId);
    const call = within(session, caller);
    const { idempotencyKey: key, payload } = request;
    const made = await receipts.once<Made>(
      { scope: `${session.row.token}/RestoreSnapshot`, key, payload },
      async (receiptOf) =>
        await inOrder(session, "RestoreSnapshot", async () => {
          const { phase, ports } = session.row;
          if (phase.kind !== "paused" && phase.kind !== "failed") assertActive(phase, "RestoreSnapshot");
          await intents.settleLeftover(session);
          const snapshot = await findSnapshot(records, session, request.snapshotId);
          using _entry = deps.cordon.enter();
          await deps.assertRoom(call);
          using _reserved = registry.reserve(id, session.row.env);
          const given = { id, labels: null, env: null, limits: {}, networkPolicy: null, ttlMs: null };
          const row = await maker.make({ ...blueprintOf(session.row, snapshot, given, deps.ceilings), ports }, call);
          const result = { id: row.id, token: row.token };
          await maker.admit([row], receiptOf(result));
          return result;
        }),
    );
    return findMade(registry, made);
  };
}
