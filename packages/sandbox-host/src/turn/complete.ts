import type { Records } from "../record/records.ts";
import type { ReceiptRow, SnapshotRow, TurnOutcome } from "../record/row.ts";
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
 * key returns the same turn. If nothing was written since the last turn, that turn is returned and no number is used. A
 * storage without snapshots only counts: then there is no snapshot and no name.
 */
export type CompleteTurn = (session: Session, request: TurnRequest, call: TurnCall) => Promise<Turn>;

export interface Turn {
  readonly turnNumber: number;
  /** Null if the storage cannot make snapshots. */
  readonly snapshot: SnapshotRow | null;
  readonly unchanged: boolean;
}

interface Parts {
  readonly records: Records;
  readonly receipts: Receipts;
  readonly intents: Intents;
  readonly storage: Storage;
  readonly sealing: Sealing;
  readonly retention: Retention;
  readonly assertRoom: (call: Call) => Promise<void>;
}

type ReceiptOf = (turn: Turn) => ReceiptRow | undefined;

export function createCompleteTurn(parts: Parts): CompleteTurn {
  const hasSnapshots = parts.storage.capabilities.snapshots === "supported";
  return async (session, request, call) => {
    const { turnKey: key, outcome, expectedGeneration } = request;
    const keyed = { scope: `${session.row.token}/TurnComplete`, key, payload: JSON.stringify([outcome]) };
    return await parts.receipts.once<Turn>(keyed, (receiptOf) =>
      inOrder(session, "TurnComplete", async () => {
        assertActive(session.row.phase, "TurnComplete");
        assertGeneration(session, expectedGeneration);
        await parts.intents.settleLeftover(session);
        return hasSnapshots
          ? await sealTurn(parts, session, { ...request, receiptOf }, call)
          : await countTurn(session, receiptOf);
      }),
    );
  };
}

async function countTurn(session: Session, receiptOf: ReceiptOf): Promise<Turn> {
  const turn: Turn = { turnNumber: session.row.turnCounter + 1, snapshot: null, unchanged: false };
  const receipt = receiptOf(turn);
  await session.commit((row) => ({ ...row, turnCounter: turn.turnNumber }), receipt === undefined ? {} : { receipt });
  return turn;
}

async function sealTurn(
  { records, storage, sealing, retention, assertRoom }: Parts,
  session: Session,
  { turnKey, outcome, receiptOf }: TurnRequest & { readonly receiptOf: ReceiptOf },
  call: TurnCall,
): Promise<Turn> {
  const turnNumber = session.row.turnCounter + 1;
  // What takes long begins at once; the snapshot has whatever was written before the call.
  const prepared = storage.prewarm?.prepareSeal(session.head, within(session, call));
  await assertRoom(call);
  const facts = { kind: "turn", turnNumber, turnKey: turnKey || null, outcome } as const;
  const [last, snapshot] = await Promise.all([findLastTurn(records, session), sealing.describe(session, facts)]);
  const turn: Turn = { turnNumber, snapshot, unchanged: false };
  const same = last === undefined ? undefined : { ...last, unchanged: true };
  const unless = same === undefined ? undefined : { since: same.snapshot, receipt: receiptOf(same) };
  const options = { receipt: receiptOf(turn), unless, prepared, beside: call.beside };
  const { sealed } = await sealing.seal(session, snapshot, options, call);
  if (!sealed && same !== undefined) return same;
  retention.enforce(session);
  return turn;
}

/** The turn that the files continue from. Any other kind of snapshot lies between turns, so a turn after it is a new one. */
async function findLastTurn(
  records: Records,
  { row }: Session,
): Promise<{ readonly turnNumber: number; readonly snapshot: SnapshotRow } | undefined> {
  const { parentSnapshot } = row;
  const snapshot = parentSnapshot === null ? null : await records.call("findSnapshot", parentSnapshot);
  return snapshot?.kind === "turn" && snapshot.turnNumber !== null
    ? { turnNumber: snapshot.turnNumber, snapshot }
    : undefined;
}
