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

interface Parts {
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

/** The longest idle time that a crash can give back to a session. */
const SAVE_EVERY_MS = 5_000;

/**
 * Pauses and destroys sessions whose time has passed. What a sweep begins goes on behind it: a pause that waits for tools
 * does not delay other sessions.
 */
export class Expiry {
  readonly #parts: Parts;
  readonly #startedMs: number;
  #savedMs: number;
  readonly #underWay = new Map<Session, Promise<void>>();
  /** An operation before it in the serial order may have given the session more time, so each looks again at its turn. */
  readonly #perform: Record<DueAction, (session: Session, call: Call) => Promise<void>> = {
    pause: (session, call) => this.#pause(session, call),
    destroy: (session) => this.#destroy(session),
  };

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#startedMs = parts.clock.monotonicMs();
    this.#savedMs = this.#startedMs;
  }

  /** Takes over how long sessions were idle under an earlier service. Call it once, when the sessions are there. */
  async load(): Promise<void> {
    const { records, registry, activity } = this.#parts;
    const idle = await records.call("listIdle", null);
    for (const session of registry.all()) {
      const idleMs = idle[session.row.token];
      if (idleMs !== undefined) activity.resume(session, idleMs);
    }
  }

  /**
   * Begins what is due, at most one action for a session at a time, and records how long sessions were idle. A later sweep
   * tries again what was refused. The signal ends pauses that are under way, too.
   */
  async sweep(call: Call): Promise<void> {
    const { registry, activity, clock } = this.#parts;
    for (const session of registry.all()) {
      // Paused time is not idle: the count begins again when the session goes on.
      if (session.row.phase.kind === "paused") activity.touch(session);
      const action = this.#underWay.has(session) ? null : this.#due(session);
      if (action !== null) this.#begin(session, action, call);
    }
    if (clock.monotonicMs() - this.#savedMs >= SAVE_EVERY_MS) await this.save();
  }

  /** Records how long sessions were idle, for the next service. */
  async save(): Promise<void> {
    const { clock, registry, records, activity } = this.#parts;
    this.#savedMs = clock.monotonicMs();
    const timed = registry
      .all()
      .filter(({ row }) => row.timing.idleTimeoutMs !== null && row.phase.kind !== "destroying");
    if (timed.length === 0) return;
    await records.call(
      "saveIdle",
      Object.fromEntries(timed.map((session) => [session.row.token, activity.idleMs(session)])),
    );
  }

  /** Settles when all actions that were begun so far have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay.values());
  }

  #due(session: Session): DueAction | null {
    const { clock, activity } = this.#parts;
    return dueAction(session.row, {
      nowMs: clock.nowMs(),
      idleMs: activity.idleMs(session),
      sinceStartMs: clock.monotonicMs() - this.#startedMs,
    });
  }

  #begin(session: Session, action: DueAction, call: Call): void {
    const work = this.#perform[action](session, call)
      .catch((thrown: unknown) => {
        if (call.signal.aborted) return;
        const { id: sessionId } = session.row;
        this.#parts.log.warn(
          { err: SandboxError.from(thrown), sessionId, action },
          "timeout of a session not enforced yet",
        );
      })
      .finally(() => void this.#underWay.delete(session));
    this.#underWay.set(session, work);
  }

  async #pause(session: Session, call: Call): Promise<void> {
    const { drainTimeoutMs, log, pauseSession } = this.#parts;
    await session.serial.idle();
    if (this.#due(session) !== "pause") return;
    log.info({ sessionId: session.row.id }, "session timed out, pausing it");
    await pauseSession(
      session,
      { expectedGeneration: undefined, late: "kill", drainTimeoutMs, cause: "timeout" },
      call,
    );
  }

  async #destroy(session: Session): Promise<void> {
    await session.serial.run(async () => {
      if (this.#due(session) !== "destroy") return;
      this.#parts.log.info({ sessionId: session.row.id }, "session timed out, destroying it");
      await this.#parts.destroySession(session);
    });
  }
}
