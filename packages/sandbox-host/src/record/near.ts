import { DatabaseSync } from "node:sqlite";
import { type OperationName, operations } from "./operation.ts";

/**
 * A second connection to the records, on the thread that asks: a lone operation is done here before the other thread has
 * woken up. It never waits, neither for a lock nor for the disk: the log of the database is begun anew by the worker
 * alone, and only who begins it has to flush it.
 */
export interface Near extends Disposable {
  /** Undefined where somebody else writes: nothing has happened then. Throws where the operation itself fails. */
  attempt(name: OperationName, input: unknown): { readonly output: unknown } | undefined;
}

const SQLITE_BUSY = 5;
/** Extended codes have the plain one in their lowest byte. */
const PLAIN = 0xff;

export function openNear(path: string): Near {
  const db = new DatabaseSync(path);
  db.exec(
    "PRAGMA busy_timeout = 0; PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON",
  );
  const [begin, commit] = [db.prepare("BEGIN IMMEDIATE"), db.prepare("COMMIT")];
  return {
    attempt: (name, input) => {
      const { run } = operations[name];
      try {
        begin.run();
        const output: unknown = run(db, input as never);
        commit.run();
        return { output };
      } catch (thrown) {
        if (db.isTransaction) db.exec("ROLLBACK");
        if (isBusy(thrown)) return undefined;
        throw thrown;
      }
    },
    [Symbol.dispose]: () => {
      if (db.isOpen) db.close();
    },
  };
}

function isBusy(thrown: unknown): boolean {
  const code = typeof thrown === "object" && thrown !== null && "errcode" in thrown ? Number(thrown.errcode) : 0;
  return (code & PLAIN) === SQLITE_BUSY;
}
