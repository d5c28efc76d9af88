import { type Clock, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { Activity } from "../session/activity.ts";
import type { Registry } from "../session/registry.ts";
import type { Session } from "../session/session.ts";
import { type DueAction, dueAction } from "../session/timing.ts";
import type { DestroySession } from "./destroy.ts";
import type { PauseSession } from "./pause.ts";

interface Call {
  readonly signal: AbortSignal;
}

/** Ends the time of sessions. What a sweep begins goes on behind it: a pause that waits for tools holds up no other. */
export interface Expiry {
  /** Takes over how long sessions were idle under an earlier service. Call it once, when the sessions are there. */
  load(): Promise<void>;
  /**
   * Begins what is due, at most one action for a session at a time, and writes down how long sessions were idle. What was
   * refused is tried again by a later sweep. The signal ends pauses that are under way, too.
   */
  sweep(call: Call): Promise<void>;
  /** Writes down how long sessions were idle, for the next service. */
  save(): Promise<void>;
  /** Settles when all that was begun so far has ended. */
  settled(): Promise<void>;
}

interface Deps {
  readonly registry: Registry;
  readonly activity: Activity;
  readonly records: Records;
  readonly clock: Clock;
  readonly log: Logger;
  readonly pauseSession: PauseSession;
  readonly destroySession: DestroySession;
  /** How long a pause waits for running tools before it kills them. */
  readonly drainTimeoutMs: number;
}

/** What a crash may give back to an idle session. */
const SAVE_EVERY_MS = 5_000;

export function createExpiry(deps: Deps): Expiry {
  const { registry, activity, records, clock, log } = deps;
  const startedMs = clock.monotonicMs();
  const underWay = new Map<Session, Promise<void>>();
  let savedMs = startedMs;

  const due = (session: Session): DueAction | null =>
    dueAction(session.row, {
      nowMs: clock.nowMs(),
      idleMs: activity.idleMs(session),
      sinceStartMs: clock.monotonicMs() - startedMs,
    });

  /** Whatever was asked for before may have given the session more time, so each looks again at its turn. */
  const perform: Record<DueAction, (session: Session, call: Call) => Promise<void>> = {
    pause: async (session, call) => {
      await session.serial.idle();
      if (due(session) !== "pause") return;
      const { drainTimeoutMs } = deps;
      log.info({ sessionId: session.row.id }, "the time of a session is over: it is paused");
      await deps.pauseSession(
        session,
        { expectedGeneration: undefined, late: "kill", drainTimeoutMs, cause: "timeout" },
        call,
      );
    },
    destroy: async (session) => {
      await session.serial.run(async () => {
        if (due(session) !== "destroy") return;
        log.info({ sessionId: session.row.id }, "the time of a session is over: it is destroyed");
        await deps.destroySession(session);
      });
    },
  };

  const begin = (session: Session, action: DueAction, call: Call): void => {
    const work = perform[action](session, call)
      .catch((thrown: unknown) => {
        if (call.signal.aborted) return;
        const { id: sessionId } = session.row;
        log.warn({ err: SandboxError.from(thrown), sessionId, action }, "a timeout has to be tried again");
      })
      .finally(() => void underWay.delete(session));
    underWay.set(session, work);
  };

  const save = async (): Promise<void> => {
    savedMs = clock.monotonicMs();
    const timed = registry
      .all()
      .filter(({ row }) => row.timing.idleTimeoutMs !== null && row.phase.kind !== "destroying");
    if (timed.length === 0) return;
    await records.call(
      "saveIdle",
      Object.fromEntries(timed.map((session) => [session.row.token, activity.idleMs(session)])),
    );
  };

  return {
    load: async () => {
      const idle = await records.call("listIdle", null);
      for (const session of registry.all()) {
        const idleMs = idle[session.row.token];
        if (idleMs !== undefined) activity.resume(session, idleMs);
      }
    },
    sweep: async (call) => {
      for (const session of registry.all()) {
        // Paused time is not idle: the count begins again when the session goes on.
        if (session.row.phase.kind === "paused") activity.touch(session);
        const action = underWay.has(session) ? null : due(session);
        if (action !== null) begin(session, action, call);
      }
      if (clock.monotonicMs() - savedMs >= SAVE_EVERY_MS) await save();
    },
    save,
    settled: async () => {
      await Promise.all(underWay.values());
    },
  };
}
