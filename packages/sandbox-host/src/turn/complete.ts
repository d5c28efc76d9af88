import type { Clock } from "@turnbox/core";
import type { Records } from "../record/records.ts";
import type { SnapshotRow, TurnOutcome } from "../record/row.ts";
import { assertGeneration } from "../session/generation.ts";
import type { Intents } from "../session/intent.ts";
import { assertActive } from "../session/phase.ts";
import type { Receipts } from "../session/receipts.ts";
import { type Session, within } from "../session/session.ts";
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
  readonly intents: Intents;
  readonly storage: Storage;
  readonly clock: Clock;
  readonly assertRoom: (call: { readonly signal: AbortSignal }) => Promise<void>;
}): CompleteTurn {
  const { records, receipts, intents, storage, clock } = deps;

  return async (session, request, call) => {
    const keyed = {
      scope: `${session.row.token}/TurnComplete`,
      key: request.turnKey,
      payload: JSON.stringify([request.outcome]),
    };
    return await receipts.once<Turn>(keyed, (receiptOf) =>
      session.serial.run(async () => {
        assertActive(session.row.phase, "TurnComplete");
        assertGeneration(session, request.expectedGeneration);
        await intents.settleLeftover(session);
        const turnNumber = session.row.turnCounter + 1;
        if (storage.capabilities.snapshots === "unsupported") {
          const turn: Turn = { turnNumber, snapshot: null };
          const receipt = receiptOf(turn);
          await session.commit(
            (row) => ({ ...row, turnCounter: turnNumber }),
            receipt === undefined ? {} : { receipt },
          );
          return turn;
        }
        await deps.assertRoom(call);
        const snapshot = await describe(session, request);
        const turn: Turn = { turnNumber, snapshot };
        const receipt = receiptOf(turn);
        const intent = { kind: "seal", token: snapshot.token, snapshot, receipt: receipt ?? null } as const;
        const sealed = intents.run(session, intent, async () => {
          await storage.seal(session.head, snapshot.name, snapshotMarks(snapshot), within(session, call));
          await session.commit((row) => ({ ...row, turnCounter: turnNumber, parentSnapshot: snapshot.id }), {
            snapshot,
            intent: "end",
            ...(receipt === undefined ? {} : { receipt }),
          });
        });
        await sealed.catch((thrown: unknown) => {
          // Settling may have found that the snapshot is there: then the turn is sealed, whatever failed on the way.
          if (session.row.parentSnapshot !== snapshot.id) throw thrown;
        });
        return turn;
      }),
    );
  };

  async function describe(session: Session, request: TurnRequest): Promise<SnapshotRow> {
    return {
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
  }
}

/** What lets the records be rebuilt from the pool: a mark for each field that has a value. */
export function snapshotMarks(snapshot: SnapshotRow): Readonly<Record<string, string>> {
  const { id, kind, turnNumber, turnKey, outcome, createdAtMs, parent, generation } = snapshot;
  const marks = {
    id,
    kind,
    turn_number: turnNumber,
    turn_key: turnKey,
    outcome,
    created_at_ms: createdAtMs,
    parent,
    generation,
  };
  return Object.fromEntries(
    Object.entries(marks).flatMap(([key, value]) => (value === null ? [] : [[key, String(value)]])),
  );
}
