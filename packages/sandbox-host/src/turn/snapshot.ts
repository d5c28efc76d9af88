import { SandboxError } from "@turnbox/core";
import type { SnapshotRow } from "../record/row.ts";
import { assertGeneration } from "../session/generation.ts";
import type { Intents } from "../session/intent.ts";
import { assertActive } from "../session/phase.ts";
import type { Receipts } from "../session/receipts.ts";
import { inOrder, type Session } from "../session/session.ts";
import type { Storage } from "../storage/storage.ts";
import type { Retention } from "./retain.ts";
import type { Sealing } from "./seal.ts";

export interface SnapshotRequest {
  readonly idempotencyKey: string;
  readonly payload: string;
  /** A name for people; need not be unique. */
  readonly title: string;
  readonly expectedGeneration: number | undefined;
}

interface Call {
  readonly signal: AbortSignal;
}

/** Takes a named snapshot, which is not counted as a turn. A paused session can have one too: nothing in it changes. */
export type CreateSnapshot = (session: Session, request: SnapshotRequest, call: Call) => Promise<SnapshotRow>;

export function createNamedSnapshot(deps: {
  readonly receipts: Receipts;
  readonly intents: Intents;
  readonly storage: Storage;
  readonly sealing: Sealing;
  readonly retention: Retention;
  readonly assertRoom: (call: Call) => Promise<void>;
}): CreateSnapshot {
  const { receipts, intents, sealing, retention } = deps;
  return async (session, request, call) => {
    assertSnapshots(deps.storage);
    const { idempotencyKey: key, payload } = request;
    return await receipts.once<SnapshotRow>(
      { scope: `${session.row.token}/CreateSnapshot`, key, payload },
      async (receiptOf) =>
        await inOrder(session, "CreateSnapshot", async () => {
          if (session.row.phase.kind !== "paused") assertActive(session.row.phase, "CreateSnapshot");
          assertGeneration(session, request.expectedGeneration);
          await intents.settleLeftover(session);
          await deps.assertRoom(call);
          const snapshot = await sealing.describe(session, { kind: "named", title: request.title });
          await sealing.seal(session, snapshot, { receipt: receiptOf(snapshot) }, call);
          retention.enforce(session);
          return snapshot;
        }),
    );
  };
}

/** Throws `SNAPSHOTS_NOT_AVAILABLE` if the storage has none. */
export function assertSnapshots(storage: Storage): void {
  if (storage.capabilities.snapshots === "supported") return;
  throw new SandboxError("SNAPSHOTS_NOT_AVAILABLE", "this host's storage has no snapshots");
}
