import type { Clock } from "@turnbox/core";
import type { Records } from "../record/records.ts";
import type { ReceiptRow, SessionRow, SnapshotRow } from "../record/row.ts";
import { newSnapshotId, nextSnapshotName } from "../record/snapshot-id.ts";
import type { CrashPointHook } from "../session/crash-point.ts";
import type { Intents } from "../session/intent.ts";
import { type Session, within } from "../session/session.ts";
import type { PreparedSeal } from "../storage/prewarm.ts";
import type { Storage } from "../storage/storage.ts";
import { snapshotMarks } from "./snapshot-marks.ts";

interface Call {
  readonly signal: AbortSignal;
}

/** What a snapshot is taken for. */
export type SealFacts = Pick<SnapshotRow, "kind"> &
  Partial<Pick<SnapshotRow, "turnNumber" | "turnKey" | "outcome" | "title" | "toolCallId">>;

export interface SealOptions {
  /** What a caller that comes back by its key is answered with, once the snapshot is there. */
  readonly receipt?: ReceiptRow | undefined;
  /** A seal of the head that was prepared ahead; see `Prewarm`. */
  readonly prepared?: PreparedSeal | undefined;
  /** Called while the snapshot is being taken, for what can be done at the same time. */
  readonly beside?: (() => void) | undefined;
  /**
   * Where nothing was written since this snapshot, the new one is dropped again. `sealed` of the answer is false then,
   * and the receipt given here is committed in the place of the other.
   */
  readonly unless?: { readonly since: SnapshotRow; readonly receipt?: ReceiptRow | undefined } | undefined;
}

/**
 * Takes snapshots of a session's head, each as one operation with an intent: after a crash a snapshot that exists is
 * adopted with its receipt, and one that does not was never taken. Call it inside the session's serial order.
 */
export interface Sealing {
  /** The snapshot to be: with its id, its name and its place in the tree. */
  describe(session: Session, facts: SealFacts): Promise<SnapshotRow>;
  seal(
    session: Session,
    snapshot: SnapshotRow,
    options: SealOptions,
    call: Call,
  ): Promise<{ readonly sealed: boolean }>;
}

const DROP_TIMEOUT_MS = 30_000;

export function createSealing(deps: {
  readonly records: Records;
  readonly intents: Intents;
  readonly storage: Storage;
  readonly clock: Clock;
  readonly crashPoint: CrashPointHook;
}): Sealing {
  const { records, intents, storage, clock, crashPoint } = deps;

  return {
    describe: async ({ row }, facts) => ({
      id: newSnapshotId(),
      token: row.token,
      name: await nextSnapshotName(records),
      turnNumber: null,
      turnKey: null,
      outcome: null,
      title: null,
      toolCallId: null,
      createdAtMs: clock.nowMs(),
      parent: row.parentSnapshot,
      generation: row.generation,
      ...facts,
    }),

    seal: async (session, snapshot, options, caller) => {
      const call = within(session, caller);
      const { receipt, unless, beside } = options;
      const intent = { kind: "seal", token: snapshot.token, snapshot, receipt: receipt ?? null } as const;
      // Asked before the snapshot: what is written by now is in it.
      const isWritten = session.dirtyFlag.isSet;
      const work = intents.run(session, intent, async (begun) => {
        const prepared = options.prepared ?? storage.prewarm?.prepareSeal(session.head, call);
        await begun;
        await crashPoint("seal.begun");
        const marks = snapshotMarks(snapshot);
        const taking =
          prepared === undefined
            ? storage.seal(session.head, snapshot.name, marks, call)
            : prepared.take(snapshot.name, marks, call);
        beside?.();
        await taking;
        await crashPoint("seal.sealed");
        const isEmpty = unless !== undefined && !isWritten && (await dropIfEmpty(snapshot, unless.since, call));
        const sealed = !isEmpty;
        const kept = isEmpty ? unless.receipt : receipt;
        await session.commit((row) => (sealed ? rowAfter(row, snapshot) : row), {
          intent: "end",
          ...(sealed ? { snapshot } : {}),
          ...(kept === undefined ? {} : { receipt: kept }),
        });
        await crashPoint("seal.committed");
        return { sealed };
      });
      return await work.catch((thrown: unknown) => {
        // Settling may have found that the snapshot is there: then it is sealed, whatever failed on the way.
        if (session.row.parentSnapshot !== snapshot.id) throw thrown;
        return { sealed: true };
      });
    },
  };

  /** Asked only when the snapshot is there: what is written before it is in it, what comes later is not its matter. */
  async function dropIfEmpty({ token, name }: SnapshotRow, since: SnapshotRow, call: Call): Promise<boolean> {
    if (!(await storage.isUnchanged({ token, name }, { token: since.token, name: since.name }, call))) return false;
    try {
      await storage.destroySnapshot({ token, name }, { signal: AbortSignal.timeout(DROP_TIMEOUT_MS) });
      return true;
    } catch {
      // An empty snapshot is a good one too.
      return false;
    }
  }
}

/** The session once the snapshot is its latest. */
export function rowAfter(row: SessionRow, snapshot: SnapshotRow): SessionRow {
  return {
    ...row,
    turnCounter: Math.max(row.turnCounter, snapshot.turnNumber ?? 0),
    parentSnapshot: snapshot.id,
  };
}
