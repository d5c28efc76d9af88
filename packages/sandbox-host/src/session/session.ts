import type { SessionCommit } from "../record/operation.ts";
import type { Records } from "../record/records.ts";
import type { SessionRow } from "../record/row.ts";
import type { HeadRef } from "../storage/storage.ts";
import { createGate, type Gate } from "./gate.ts";
import { createSerial, type Serial } from "./serial.ts";

/**
 * A session of this host: its row, and what lives only in memory. The row is replaced, never changed in place, and only
 * by `commit`, so what is in memory is never ahead of what is durable.
 */
export interface Session {
  readonly row: SessionRow;
  readonly head: HeadRef;
  /** The order of operations that change the session; tool calls do not wait in it. */
  readonly serial: Serial;
  readonly gate: Gate;
  /** Aborts when the session is destroyed; whatever works for the session listens to it. */
  readonly lifetime: AbortController;
  /** Makes the changed row durable together with the extras; the row in memory follows. Changes queue up. */
  commit(change: (row: SessionRow) => SessionRow, extras?: Omit<SessionCommit, "session">): Promise<void>;
}

export function createSession(first: SessionRow, records: Records): Session {
  let row = first;
  const commits = createSerial();
  return {
    get row() {
      return row;
    },
    get head() {
      return { token: row.token, generation: row.headGeneration };
    },
    serial: createSerial(),
    gate: createGate(),
    lifetime: new AbortController(),
    commit: (change, extras = {}) =>
      commits.run(async () => {
        const next = change(row);
        await records.call("commitSession", { session: next, ...extras });
        row = next;
      }),
  };
}
