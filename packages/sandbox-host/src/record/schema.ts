import type { DatabaseSync } from "node:sqlite";

/** Raised whenever the tables or the shape of a stored row change. */
export const SCHEMA_VERSION = 1;

const TABLES = `
  CREATE TABLE sessions (id TEXT PRIMARY KEY, token TEXT NOT NULL UNIQUE, row TEXT NOT NULL) STRICT;
  CREATE TABLE snapshots (id TEXT PRIMARY KEY, token TEXT NOT NULL, name TEXT NOT NULL UNIQUE, row TEXT NOT NULL) STRICT;
  CREATE INDEX snapshots_by_token ON snapshots (token);
  CREATE TABLE intents (token TEXT PRIMARY KEY, row TEXT NOT NULL) STRICT;
  CREATE TABLE receipts (scope TEXT NOT NULL, key TEXT NOT NULL, payload_hash TEXT NOT NULL, result TEXT NOT NULL,
    at_ms INTEGER NOT NULL, PRIMARY KEY (scope, key)) STRICT;
  CREATE INDEX receipts_by_time ON receipts (at_ms);
  CREATE TABLE calls (token TEXT NOT NULL, call_id TEXT NOT NULL, payload_hash TEXT NOT NULL, generation INTEGER NOT NULL,
    status TEXT NOT NULL, result TEXT, at_ms INTEGER NOT NULL, PRIMARY KEY (token, call_id)) STRICT;
  CREATE INDEX calls_by_time ON calls (at_ms);
  CREATE TABLE sequence (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
`;

/**
 * Prepares an opened database: makes the tables of a new one, accepts one of this version, and throws for any other and
 * for a damaged one, so that wrong data is never served.
 */
export function prepareSchema(db: DatabaseSync): void {
  db.exec("PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON");
  const check = db.prepare("PRAGMA quick_check(1)").get();
  if (check?.["quick_check"] !== "ok") throw new Error("the records are damaged (sqlite quick_check failed)");
  const version = db.prepare("PRAGMA user_version").get()?.["user_version"];
  if (version === SCHEMA_VERSION) return;
  if (version !== 0)
    throw new Error(`the records have schema version ${String(version)}, this host knows ${SCHEMA_VERSION}`);
  db.exec(`BEGIN; ${TABLES} PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
}
