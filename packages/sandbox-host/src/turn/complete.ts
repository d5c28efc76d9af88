import type { Records } from "../record/records.ts";
import type { SnapshotRow, TurnOutcome } from "../record/row.ts";
import { assertGeneration } from "../session/generation.ts";
import type { Intents } from "../session/intent.ts";
import { assertActive } from "../session/phase.ts";
import type { Receipts } from "../session/receipts.ts";
import { inOrder, type Session, within } from "../session/session.ts";
import type { Storage } from "../storage/storage.ts";
import type { Retention } from "./retain.ts";
import type { Sealing } from "./seal.ts";

export interface TurnRequest {
  readonly turnKey: string;
  readonly outcome: TurnOutcome;
  readonly expectedGeneration: number | undefined;
}

interface Call {
  readonly signal: AbortSignal;
}

interface TurnCall extends Call {
  /** See `SealOptions`. */
  readonly beside?: () => void;
}

/**
 * Seals a turn. Turns of one session follow one another; the number rises with each and is never used twice. The same
 * key answers with the same turn. Where nothing was written since the last turn, that one is the answer and no number is
 * used. A storage without snapshots only counts: then there is no snapshot and no name.
 */
export type CompleteTurn = (session: Session, request: TurnRequest, call: TurnCall) => Promise<Turn>;

export interface Turn {
  readonly turnNumber: number;
  /** Null where the storage cannot make snapshots. */
  readonly snapshot: SnapshotRow | null;
  readonly unchanged: boolean;
}

export function createCompleteTurn(deps: {
  readonly records: Records;
  readonly receipts: Receipts;
  readonly intents: Intents;
  readonly storage: Storage;
  readonly sealing: Sealing;
  readonly retention: Retention;
  readonly assertRoom: (call: Call) => Promise<void>;
}): CompleteTurn {
  const { records, receipts, intents, storage, sealing, retention } = deps;

  return async (session, request, call) => {
    const keyed = {
      scope: `${session.row.token}/TurnComplete`,
      key: request.turnKey,
      payload: JSON.stringify([request.outcome]),
    };
    return await receipts.once<Turn>(keyed, (receiptOf) =>
      inOrder(session, "TurnComplete", async () => {
        assertActive(session.row.phase, "TurnComplete");
        assertGeneration(session, request.expectedGeneration);
        await intents.settleLeftover(session);
        const turnNumber = session.row.turnCounter + 1;
        if (storage.capabilities.snapshots === "unsupported") {
          const turn: Turn = { turnNumber, snapshot: null, unchanged: false };
          const receipt = receiptOf(turn);
          await session.commit(
            (row) => ({ ...row, turnCounter: turnNumber }),
            receipt === undefined ? {} : { receipt },
          );
          return turn;
        }
        // What takes long begins at once; whatever was written before the call is in it.
        const prepared = storage.prewarm?.prepareSeal(session.head, within(session, call));
        await deps.assertRoom(call);
        const [last, snapshot] = await Promise.all([findLastTurn(session), describe(session, request)]);
        const turn: Turn = { turnNumber, snapshot, unchanged: false };
        const same = last === undefined ? undefined : { ...last, unchanged: true };
        const unless = same === undefined ? undefined : { since: same.snapshot, receipt: receiptOf(same) };
        const options = { receipt: receiptOf(turn), unless, prepared, beside: call.beside };
        const { sealed } = await sealing.seal(session, snapshot, options, call);
        if (!sealed && same !== undefined) return same;
        retention.enforce(session);
        return turn;
      }),
    );
  };

  /** The turn that the files continue from. Any other kind of snapshot lies between turns, so a turn after it is a new one. */
  async function findLastTurn(
    session: Session,
  ): Promise<{ readonly turnNumber: number; readonly snapshot: SnapshotRow } | undefined> {
    const { parentSnapshot } = session.row;
    const snapshot = parentSnapshot === null ? null : await records.call("findSnapshot", parentSnapshot);
    return snapshot?.kind === "turn" && snapshot.turnNumber !== null
      ? { turnNumber: snapshot.turnNumber, snapshot }
      : undefined;
  }

  async function describe(session: Session, { turnKey, outcome }: TurnRequest): Promise<SnapshotRow> {
    const turnNumber = session.row.turnCounter + 1;
    return await sealing.describe(session, { kind: "turn", turnNumber, turnKey: turnKey || null, outcome });
  }
}
