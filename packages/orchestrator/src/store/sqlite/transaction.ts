// Runs inside the worker thread: only node's own modules and relative imports.
import type { DatabaseSync } from "node:sqlite";

/** Makes the function that runs work as one transaction: all of it, or nothing if it throws. */
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

/**
 * Runs a transaction whose commit is written, but not flushed to the disk: it outlives the process, and the machine only
 * from the next commit on that is flushed.
 */
export function unflushed<T>(database: DatabaseSync, transaction: () => T): T {
  database.exec("PRAGMA synchronous = NORMAL");
  try {
    return transaction();
  } finally {
    database.exec("PRAGMA synchronous = FULL");
  }
}
