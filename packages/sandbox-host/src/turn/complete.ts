import type { Clock } from "@turnbox/core";
import type { Records } from "../record/records.ts";
import type { SnapshotRow, TurnOutcome } from "../record/row.ts";
import { assertGeneration } from "../session/generation.ts";
import { assertActive } from "../session/phase.ts";
import type { Receipts } from "../session/receipts.ts";
import type { Session } from "../session/session.ts";
import type { Storage } from "../storage/storage.ts";
import { newSnapshotId, nextSnapshotName } from "./snapshot-id.ts";

export interface TurnRequest {
  readonly turnKey: string;
  readonly outcome: TurnOutcome;
  readonly expectedGeneration: number | undefined;
}

/**
 * Seals a turn. Turns of one session follow one another; the number rises with each and is never used twice. The same
 * key answers with the same turn. A storage without snapshots only counts: then there is no snapshot and no name.
 */
export type CompleteTurn = (
  session: Session,
  request: TurnRequest,
  call: { readonly signal: AbortSignal },
) => Promise<Turn>;

export interface Turn {
  readonly turnNumber: number;
  /** Null where the storage cannot make snapshots. */
  readonly snapshot: SnapshotRow | null;
}

export function createCompleteTurn(deps: {
  readonly records: Records;
  readonly receipts: Receipts;
  readonly storage: Storage;
  readonly clock: Clock;
  readonly assertRoom: (call: { readonly signal: AbortSignal }) => Promise<void>;
}): CompleteTurn {
  const { records, receipts, storage, clock } = deps;

  return async (session, request, call) => {
    const keyed = {
      scope: `${session.row.token}/TurnComplete`,
      key: request.turnKey,
      payload: JSON.stringify([request.outcome]),
    };
    return await receipts.once<Turn>(keyed, (receipt) =>
      session.serial.run(async () => {
        assertActive(session.row.phase, "TurnComplete");
        assertGeneration(session, request.expectedGeneration);
        const turnNumber = session.row.turnCounter + 1;
        const snapshot = storage.capabilities.snapshots === "supported" ? await take(session, request, call) : null;
        const turn: Turn = { turnNumber, snapshot };
        const done = receipt(turn);
        await session.commit(
          (row) => ({ ...row, turnCounter: turnNumber, parentSnapshot: snapshot?.id ?? row.parentSnapshot }),
          {
            intent: "end",
            ...(snapshot === null ? {} : { snapshot }),
            ...(done === undefined ? {} : { receipt: done }),
          },
        );
        return turn;
      }),
    );
  };

  async function take(
    session: Session,
    request: TurnRequest,
    call: { readonly signal: AbortSignal },
  ): Promise<SnapshotRow> {
    await deps.assertRoom(call);
    const snapshot: SnapshotRow = {
      id: newSnapshotId(),
      token: session.row.token,
      name: await nextSnapshotName(records),
      kind: "turn",
      turnNumber: session.row.turnCounter + 1,
      turnKey: request.turnKey === "" ? null : request.turnKey,
      outcome: request.outcome,
      createdAtMs: clock.nowMs(),
      parent: session.row.parentSnapshot,
      generation: session.row.generation,
    };
    await records.call("beginIntent", { kind: "seal", token: snapshot.token, snapshot });
    try {
      await storage.seal(session.head, snapshot.name, snapshotMarks(snapshot), call);
    } catch (thrown) {
      await abandonSeal({ records, storage }, snapshot);
      throw thrown;
    }
    return snapshot;
  }
}

/** What lets the records be rebuilt from the pool. */
export function snapshotMarks(snapshot: SnapshotRow): Readonly<Record<string, string>> {
  return { snapshot: JSON.stringify(snapshot) };
}

/** Undoes a seal whose outcome is unknown or unwanted: the snapshot is gone, then its intent. */
export async function abandonSeal(
  deps: { readonly records: Records; readonly storage: Storage },
  snapshot: SnapshotRow,
): Promise<void> {
  const call = { signal: AbortSignal.timeout(ABANDON_TIMEOUT_MS) };
  await deps.storage.destroySnapshot({ token: snapshot.token, name: snapshot.name }, call);
  await deps.records.call("endIntent", snapshot.token);
}

const ABANDON_TIMEOUT_MS = 30_000;
