// Runs inside the worker thread: only node's own modules and relative imports.
import type { DatabaseSync } from "node:sqlite";

/** Makes the function that runs work as one transaction: all of it, or nothing where it throws. */
export function createTransaction(database: DatabaseSync) {
  return <T>(work: () => T): T => {
    database.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      database.exec("COMMIT");
      return result;
    } catch (error) {
      database.exec("ROLLBACK");
      throw error;
    }
  };
}
