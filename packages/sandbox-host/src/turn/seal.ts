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
  /** The receipt of the operation that takes the snapshot, committed with it. Default none. */
  readonly receipt?: ReceiptRow | undefined;
  /** A seal of the head that was prepared ahead; see `Prewarm`. Default none. */
  readonly prepared?: PreparedSeal | undefined;
  /** Called while the snapshot is being taken, for what can be done at the same time. */
  readonly beside?: (() => void) | undefined;
  /**
   * If nothing was written since this snapshot, the new one is dropped again. The result has `sealed: false` then, and the
   * receipt given here is committed in place of the other. By default the snapshot is kept.
   */
  readonly unless?: { readonly since: SnapshotRow; readonly receipt?: ReceiptRow | undefined } | undefined;
}

interface Parts {
  readonly records: Records;
  readonly intents: Intents;
  readonly storage: Storage;
  readonly clock: Clock;
  readonly crashPoint: CrashPointHook;
}

/** A seal under way. */
interface Seal {
  readonly session: Session;
  readonly snapshot: SnapshotRow;
  readonly options: SealOptions;
  /** Settles when the intent is durable. */
  readonly begun: Promise<void>;
}

const DROP_TIMEOUT_MS = 30_000;

/**
 * Takes snapshots of a session's head, each as one operation with an intent: after a crash a snapshot that exists is
 * adopted with its receipt, and one that does not was never taken. Call it inside the session's serial order.
 */
export class Sealing {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The snapshot to be: with its id, its name and its parent in the tree. */
  async describe({ row }: Session, facts: SealFacts): Promise<SnapshotRow> {
    const { records, clock } = this.#parts;
    return {
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
    };
  }

  async seal(
    session: Session,
    snapshot: SnapshotRow,
    options: SealOptions,
    caller: Call,
  ): Promise<{ readonly sealed: boolean }> {
    const call = within(session, caller);
    const intent = { kind: "seal", token: snapshot.token, snapshot, receipt: options.receipt ?? null } as const;
    // Read before the snapshot is taken: the snapshot has what is written by now.
    const isWritten = session.dirtyFlag.isSet;
    const work = this.#parts.intents.run(session, intent, async (begun) => {
      await this.#take({ session, snapshot, options, begun }, call);
      await this.#parts.crashPoint("seal.sealed");
      const { unless } = options;
      const isEmpty = unless !== undefined && !isWritten && (await this.#dropIfEmpty(snapshot, unless.since, call));
      const sealed = !isEmpty;
      const receipt = isEmpty ? unless.receipt : options.receipt;
      await session.commit((row) => (sealed ? rowAfter(row, snapshot) : row), {
        intent: "end",
        ...(sealed ? { snapshot } : {}),
        ...(receipt === undefined ? {} : { receipt }),
      });
      await this.#parts.crashPoint("seal.committed");
      return { sealed };
    });
    return await work.catch((thrown: unknown) => {
      // Settling may have found that the snapshot is there: then it is sealed, despite the failure.
      if (session.row.parentSnapshot !== snapshot.id) throw thrown;
      return { sealed: true };
    });
  }

  /** Takes the snapshot when the intent is durable. What a seal prepares begins before that. */
  async #take({ session, snapshot, options, begun }: Seal, call: Call): Promise<void> {
    const { storage, crashPoint } = this.#parts;
    const prepared = options.prepared ?? storage.prewarm?.prepareSeal(session.head, call);
    await begun;
    await crashPoint("seal.begun");
    const marks = snapshotMarks(snapshot);
    const taking =
      prepared === undefined
        ? storage.seal(session.head, snapshot.name, marks, call)
        : prepared.take(snapshot.name, marks, call);
    options.beside?.();
    await taking;
  }

  /** Compares only after the snapshot was taken: a write before it is in it, and one after it does not count. */
  async #dropIfEmpty({ token, name }: SnapshotRow, since: SnapshotRow, call: Call): Promise<boolean> {
    const { storage } = this.#parts;
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
