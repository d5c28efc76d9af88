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
  /** The bound of the first head if it is not `quotaBytes` on top of the origin. */
  readonly refquotaBytes: number | null;
  readonly turnCounter: number;
}

interface Parts {
  readonly registry: Registry;
  readonly records: Records;
  readonly events: SessionEvents;
  readonly storage: Storage;
  readonly space: Pick<Space, "begin">;
  /** Notes the heads that are made. */
  readonly recentMounts: Pick<RecentMounts, "note">;
  readonly clock: Clock;
  readonly destroySession: DestroySession;
  readonly crashPoint: CrashPointHook;
}

const UNDO_TIMEOUT_MS = 30_000;

/**
 * Makes sessions in two steps: first record and files, then, for all that were made together, the admission in one
 * commit. A crash before the admission undoes them at the next start, so a caller that got no answer finds none.
 */
export class Maker {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Makes a session that is not usable yet. If it fails, nothing of it is left. */
  async make(blueprint: Blueprint, call: { readonly signal: AbortSignal }): Promise<SessionRow> {
    const { clock, records, storage, recentMounts, crashPoint } = this.#parts;
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
      recentMounts.note(head);
      await crashPoint("create.files_made");
      return { ...row, refquotaBytes: head.refquotaBytes ?? null };
    } catch (thrown) {
      await this.discard(row);
      throw thrown;
    }
  }

  /** Makes them usable, all or none. If it fails, nothing of them is left. */
  async admit(rows: readonly SessionRow[], receipt: ReceiptRow | undefined): Promise<void> {
    const sessions = rows.map((row) => ({ ...row, phase: { kind: "active" } }) as const);
    try {
      await this.#parts.records.call("commitSessions", { sessions, ...(receipt === undefined ? {} : { receipt }) });
    } catch (thrown) {
      for (const row of rows) await this.discard(row);
      throw thrown;
    }
    for (const row of sessions) this.#startMade(row);
  }

  /**
   * Makes a warm session, files and container, into what the blueprint says, usable with one commit. If it fails, the
   * warm session is as it was.
   */
  async handOver(
    ready: SessionRow,
    blueprint: Blueprint,
    receiptOf: (row: SessionRow) => ReceiptRow | undefined,
  ): Promise<SessionRow> {
    const { token, refquotaBytes, container } = ready;
    const phase = { kind: "active" } as const;
    const made = toRow(blueprint, this.#parts.clock.nowMs());
    const session: SessionRow = { ...made, token, refquotaBytes, container, phase };
    const receipt = receiptOf(session);
    await this.#parts.records.call("handOverSession", {
      from: ready.id,
      session,
      ...(receipt === undefined ? {} : { receipt }),
    });
    this.#startMade(session);
    return session;
  }

  /**
   * Removes a session that was made and never became usable; its container has ended. It has a deadline of its own, because
   * the caller's signal may be what made the work fail. What cannot be removed now is removed later.
   */
  async discard(row: SessionRow): Promise<void> {
    const { storage, records, destroySession } = this.#parts;
    try {
      await storage.destroySession(row.token, { signal: AbortSignal.timeout(UNDO_TIMEOUT_MS) });
      await records.call("deleteSession", row.token);
    } catch {
      await destroySession(this.#start(row));
    }
  }

  #start(row: SessionRow): Session {
    const session = createSession(row, this.#parts);
    this.#parts.registry.add(session);
    return session;
  }

  #startMade(row: SessionRow): void {
    const session = this.#start(row);
    this.#parts.space.begin(session);
    this.#parts.events.publish("created", session);
  }
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
