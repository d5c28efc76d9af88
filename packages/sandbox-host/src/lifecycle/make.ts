import { type Clock, randomToken, type SessionId } from "@turnbox/core";
import type { RecentMounts } from "../container/recent-mounts.ts";
import type { NetworkPolicy } from "../network-policy/policy.ts";
import type { Records } from "../record/records.ts";
import type { ReceiptRow, SessionRow, Timing } from "../record/row.ts";
import type { ContainerLimits } from "../runtime/runtime.ts";
import type { CrashPointHook } from "../session/crash-point.ts";
import type { SessionEvents } from "../session/events.ts";
import type { Registry } from "../session/registry.ts";
import { sessionMarks } from "../session/session-marks.ts";
import { createSession, type Session } from "../session/session.ts";
import type { Space } from "../session/space.ts";
import { startTiming } from "../session/timing.ts";
import type { BaseRef, Origin, Storage } from "../storage/storage.ts";
import type { DestroySession } from "./destroy.ts";

/** How long a session may live, as its maker says. */
export type TimePolicy = Omit<Timing, "expiresAtMs">;

/** A session to make. Its id has been reserved by the caller. */
export interface Blueprint {
  readonly id: SessionId;
  readonly tenant: string;
  /** The template that its files come from in the end. */
  readonly base: BaseRef;
  readonly origin: Origin;
  readonly labels: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ContainerLimits;
  readonly time: TimePolicy;
  readonly ports: readonly number[];
  readonly networkPolicy: NetworkPolicy | null;
  readonly forkedFrom: SessionRow["forkedFrom"];
  readonly quotaBytes: number | null;
  /** The bound of the first head where it is not `quotaBytes` on top of the origin. */
  readonly refquotaBytes: number | null;
  readonly turnCounter: number;
}

/**
 * Makes sessions in two steps: first record and files, then, for all that were made together, the admission in one
 * commit. A crash before the admission undoes them at the next start, so a caller that was not answered finds none.
 */
export interface Maker {
  /** Makes a session that is not usable yet. Where it fails, nothing of it is left. */
  make(blueprint: Blueprint, call: { readonly signal: AbortSignal }): Promise<SessionRow>;
  /** Makes them usable, all or none; where it fails, nothing of them is left. */
  admit(rows: readonly SessionRow[], receipt: ReceiptRow | undefined): Promise<void>;
  /**
   * Makes a session that stands ready, files and container, into what the blueprint says, usable with one commit. Where it
   * fails, nothing of it is left.
   */
  handOver(
    ready: SessionRow,
    blueprint: Blueprint,
    receiptOf: (row: SessionRow) => ReceiptRow | undefined,
  ): Promise<SessionRow>;
  /** Takes a session away that was made and never became usable; its container has ended. */
  discard(row: SessionRow): Promise<void>;
}

const UNDO_TIMEOUT_MS = 30_000;

export function createMaker(deps: {
  readonly registry: Registry;
  readonly records: Records;
  readonly events: SessionEvents;
  readonly storage: Storage;
  readonly space: Pick<Space, "begin">;
  /** Told of the heads that are made. */
  readonly recentMounts: Pick<RecentMounts, "note">;
  readonly clock: Clock;
  readonly destroySession: DestroySession;
  readonly crashPoint: CrashPointHook;
}): Maker {
  const { registry, records, events, storage, clock, crashPoint } = deps;

  const start = (row: SessionRow): Session => {
    const session = createSession(row, { records, events });
    registry.add(session);
    return session;
  };
  const startMade = (row: SessionRow): void => {
    const session = start(row);
    deps.space.begin(session);
    events.publish("created", session);
  };

  /** Cleanup is not the caller's: its signal may be what made the work fail. What cannot be undone now is removed later. */
  const undo = async (row: SessionRow): Promise<void> => {
    try {
      await storage.destroySession(row.token, { signal: AbortSignal.timeout(UNDO_TIMEOUT_MS) });
      await records.call("deleteSession", row.token);
    } catch {
      await deps.destroySession(start(row));
    }
  };

  return {
    make: async (blueprint, call) => {
      const row = toRow(blueprint, clock.nowMs());
      await records.call("insertSession", row);
      await crashPoint("create.recorded");
      try {
        const head = await storage.createSession(
          {
            token: row.token,
            origin: blueprint.origin,
            marks: sessionMarks(row),
            ...(blueprint.quotaBytes === null ? {} : { quotaBytes: blueprint.quotaBytes }),
            ...(blueprint.refquotaBytes === null ? {} : { refquotaBytes: blueprint.refquotaBytes }),
          },
          call,
        );
        deps.recentMounts.note(head);
        await crashPoint("create.files_made");
        return { ...row, refquotaBytes: head.refquotaBytes ?? null };
      } catch (thrown) {
        await undo(row);
        throw thrown;
      }
    },

    admit: async (rows, receipt) => {
      const sessions = rows.map((row) => ({ ...row, phase: { kind: "active" } }) as const);
      try {
        await records.call("commitSessions", { sessions, ...(receipt === undefined ? {} : { receipt }) });
      } catch (thrown) {
        for (const row of rows) await undo(row);
        throw thrown;
      }
      for (const row of sessions) startMade(row);
    },

    handOver: async (ready, blueprint, receiptOf) => {
      const { token, refquotaBytes, container } = ready;
      const phase = { kind: "active" } as const;
      const session: SessionRow = { ...toRow(blueprint, clock.nowMs()), token, refquotaBytes, container, phase };
      const receipt = receiptOf(session);
      await records.call("handOverSession", {
        from: ready.id,
        session,
        ...(receipt === undefined ? {} : { receipt }),
      });
      startMade(session);
      return session;
    },

    discard: undo,
  };
}

function toRow(blueprint: Blueprint, nowMs: number): SessionRow {
  const { origin: _, time, ...same } = blueprint;
  return {
    ...same,
    token: randomToken(12),
    phase: { kind: "creating" },
    generation: 1,
    headGeneration: 1,
    createdAtMs: nowMs,
    timing: startTiming(time, nowMs),
    refquotaBytes: null,
    container: null,
    exposures: [],
    parentSnapshot: null,
  };
}
