import { Mutex, SandboxError } from "@turnbox/core";
import type { SessionCommit } from "../record/operation.ts";
import type { Records } from "../record/records.ts";
import type { IntentRow, SessionRow } from "../record/row.ts";
import type { HeadRef } from "../storage/storage.ts";
import { DirtyFlag } from "./dirty-flag.ts";
import { createGate, type Gate } from "./gate.ts";
import { assertActive, assertTransition } from "./phase.ts";

/**
 * A session of this host: its row, and what lives only in memory. The row is replaced, never changed in place, and only
 * by `commit`, so what is in memory is never ahead of what is durable.
 */
export interface Session {
  readonly row: SessionRow;
  readonly head: HeadRef;
  /** The order of operations that change the session; tool calls do not wait in it. */
  readonly serial: Mutex;
  readonly gate: Gate;
  readonly dirtyFlag: DirtyFlag;
  /** Aborts when the session is destroyed; all work for the session ends with it. */
  readonly lifetime: AbortController;
  /** Aborts when the tool calls that run now are to be killed. */
  readonly interrupt: AbortSignal;
  killTools(): void;
  /** An operation that failed and could not be undone; the next one in `serial` has to end it first. */
  leftover: IntentRow | null;
  /** Settles when what an earlier service left running in it has been ended; until then nothing new runs there. */
  returned: Promise<void>;
  /**
   * Makes the changed row durable together with the extras; the row in memory follows. Changes queue up. A phase moves
   * only along the transition table.
   */
  commit(change: (row: SessionRow) => SessionRow, extras?: Omit<SessionCommit, "session">): Promise<void>;
}

/** Receives what happens to a session. */
export interface SessionObserver {
  publish(kind: "changed" | "sealed", session: Session): void;
}

export function createSession(
  first: SessionRow,
  { records, events }: { readonly records: Records; readonly events: SessionObserver },
): Session {
  let row = first;
  const commits = new Mutex();
  let interrupt = new AbortController();
  const session: Session = {
    get interrupt() {
      return interrupt.signal;
    },
    killTools: () => {
      // Calls that come later have a signal of their own.
      const running = interrupt;
      interrupt = new AbortController();
      running.abort();
    },
    get row() {
      return row;
    },
    get head() {
      return { token: row.token, generation: row.headGeneration };
    },
    serial: new Mutex(),
    gate: createGate(),
    dirtyFlag: new DirtyFlag(() => row),
    lifetime: new AbortController(),
    leftover: null,
    returned: Promise.resolve(),
    commit: (change, extras = {}) =>
      commits.run(async () => {
        const next = change(row);
        if (next.phase.kind !== row.phase.kind) assertTransition(row.phase.kind, next.phase.kind);
        // An environment never changes, and may be large.
        const { env: _, ...stored } = next;
        await records.call("commitSession", { session: stored, ...extras });
        const before = row;
        row = next;
        if (extras.snapshot !== undefined) events.publish("sealed", session);
        if (next.phase.kind !== before.phase.kind || next.generation !== before.generation)
          events.publish("changed", session);
      }),
  };
  return session;
}

/** The key under which calls of the session are counted in shares of what all sessions of a host use. */
export function shareKeyOf({ row }: Session): string {
  return row.token;
}

/** A signal that aborts with the caller's, and when the session is destroyed. */
export function within(session: Session, call: { readonly signal: AbortSignal }): { readonly signal: AbortSignal } {
  return { signal: AbortSignal.any([call.signal, session.lifetime.signal]) };
}

/**
 * Runs an operation in the session's serial order. One on a session that is being destroyed is refused at once: it would
 * only wait for the removal.
 */
export async function inOrder<Result>(
  session: Session,
  operation: string,
  work: () => Promise<Result>,
): Promise<Result> {
  if (session.row.phase.kind === "destroying") assertActive(session.row.phase, operation);
  return await session.serial.run(work);
}

/** The reason that a destroyed session's work ends with. */
export const DESTROYED = new SandboxError("SESSION_DESTROYING", "the session is being destroyed");
