import type { DatabaseSync } from "node:sqlite";
import { keepEnvironment, TABLE_OF_ENVIRONMENTS } from "./environment-records.ts";
import { TABLE_OF_PROCESSES } from "./process-records.ts";
import { TABLES_OF_RESULTS } from "./result-records.ts";
import type { SessionRow } from "./row.ts";

/** Raised whenever the tables or the shape of a stored row change. */
export const SCHEMA_VERSION = 4;

/** What heads were made from, and what became of them; heads whose loss is not dealt with yet; facts of the machine. */
const TABLES_OF_HEADS = `
  CREATE TABLE heads (token TEXT NOT NULL, generation INTEGER NOT NULL, origin_generation INTEGER,
    origin_begun_tick INTEGER, origin_sealed_tick INTEGER, origin_call_id TEXT, safe_tick INTEGER, lost_tick INTEGER,
    PRIMARY KEY (token, generation)) STRICT;
  CREATE TABLE lost_heads (token TEXT NOT NULL, generation INTEGER NOT NULL, PRIMARY KEY (token, generation)) STRICT;
  CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
`;

const TABLES = `
  CREATE TABLE sessions (id TEXT PRIMARY KEY, token TEXT NOT NULL UNIQUE, row TEXT NOT NULL, env_hash TEXT) STRICT;
  ${TABLE_OF_ENVIRONMENTS}
  CREATE TABLE snapshots (id TEXT PRIMARY KEY, token TEXT NOT NULL, name TEXT NOT NULL UNIQUE, row TEXT NOT NULL,
    head_generation INTEGER NOT NULL DEFAULT 0, sealed_tick INTEGER NOT NULL DEFAULT 0) STRICT;
  CREATE INDEX snapshots_by_token ON snapshots (token);
  CREATE TABLE intents (token TEXT PRIMARY KEY, row TEXT NOT NULL) STRICT;
  CREATE TABLE receipts (scope TEXT NOT NULL, key TEXT NOT NULL, payload_hash TEXT NOT NULL, result TEXT NOT NULL,
    at_ms INTEGER NOT NULL, PRIMARY KEY (scope, key)) STRICT;
  CREATE INDEX receipts_by_time ON receipts (at_ms);
  ${TABLES_OF_RESULTS}
  CREATE TABLE husks (token TEXT PRIMARY KEY, row TEXT NOT NULL) STRICT;
  CREATE TABLE idle (token TEXT PRIMARY KEY, idle_ms INTEGER NOT NULL) STRICT;
  CREATE TABLE sequence (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
  ${TABLES_OF_HEADS}
  ${TABLE_OF_PROCESSES}
`;

/** Tells the error in another thread, which a class does not. */
export const LATER_RECORDS = "LaterRecordsError";

/** The records were written by a later version of the host; they are as they were. */
export class LaterRecordsError extends Error {
  override readonly name = LATER_RECORDS;
}

/** What brings the records from a version to the next one. */
const MIGRATIONS: Readonly<Record<number, (db: DatabaseSync) => void>> = {
  1: (db) => {
    db.exec(`
      CREATE TABLE husks (token TEXT PRIMARY KEY, row TEXT NOT NULL) STRICT;
      CREATE TABLE idle (token TEXT PRIMARY KEY, idle_ms INTEGER NOT NULL) STRICT;
    `);
    const timing = { ttlMs: null, expiresAtMs: null, idleTimeoutMs: null, onTimeout: "destroy" };
    rewriteRows(db, "sessions", (row) => ({
      ...row,
      timing,
      ports: [],
      forkedFrom: null,
      ...(isPaused(row) ? { phase: { kind: "paused", sinceMs: row["createdAtMs"], cause: "request" } } : {}),
    }));
    rewriteRows(db, "snapshots", (row) => ({ ...row, title: null, toolCallId: null }));
    // An intent holds rows of the old shape. None was left by a stop, and one that a crash left is ended by the old version.
    const { count } = db.prepare("SELECT count(*) AS count FROM intents").get() ?? {};
    if (count !== 0) throw new Error("an operation was cut off by a crash: start the earlier version once to end it");
  },
  // The heads of calls of the older version are not known, so their outcome is not either.
  2: (db) => {
    db.exec(`
      ALTER TABLE snapshots ADD COLUMN head_generation INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE snapshots ADD COLUMN sealed_tick INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE calls ADD COLUMN head_generation INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE calls ADD COLUMN start_tick INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE calls ADD COLUMN end_tick INTEGER;
      ${TABLES_OF_HEADS}
      ${TABLE_OF_PROCESSES}
    `);
    rewriteRows(db, "sessions", (row) => ({ ...row, networkPolicy: null, exposures: [] }));
  },
  // A result stays as it was written, however large: it is charged, and goes when the session is over its bound.
  3: (db) => {
    db.exec(`
      ALTER TABLE sessions ADD COLUMN env_hash TEXT;
      ${TABLE_OF_ENVIRONMENTS}
      DROP INDEX IF EXISTS calls_by_time;
      ALTER TABLE calls RENAME TO calls_before;
      ${TABLES_OF_RESULTS}
      INSERT INTO calls (token, call_id, payload_hash, generation, status, at_ms, head_generation, start_tick, end_tick,
        result_bytes, result)
        SELECT token, call_id, payload_hash, generation, status, at_ms, head_generation, start_tick, end_tick,
          octet_length(coalesce(result, '')), result FROM calls_before ORDER BY rowid;
      DROP TABLE calls_before;
    `);
    takeEnvironmentsOut(db);
  },
};

/** One session at a time: environments of the older version had no bound. */
function takeEnvironmentsOut(db: DatabaseSync): void {
  const read = db.prepare("SELECT row FROM sessions WHERE id = ?");
  const update = db.prepare("UPDATE sessions SET row = ?, env_hash = ? WHERE id = ?");
  for (const { id } of db.prepare("SELECT id FROM sessions").all()) {
    const { env, ...row } = JSON.parse(String(read.get(String(id))?.["row"])) as SessionRow;
    update.run(JSON.stringify(row), keepEnvironment(db, env), String(id));
  }
}

type Row = Readonly<Record<string, unknown>>;

function rewriteRows(db: DatabaseSync, table: "sessions" | "snapshots", change: (row: Row) => Row): void {
  const update = db.prepare(`UPDATE ${table} SET row = ? WHERE id = ?`);
  for (const { id, row } of db.prepare(`SELECT id, row FROM ${table}`).all()) {
    update.run(JSON.stringify(change(JSON.parse(String(row)) as Row)), String(id));
  }
}

function isPaused(row: Row): boolean {
  return (row["phase"] as { readonly kind: string }).kind === "paused";
}

/**
 * Prepares an opened database: makes the tables of a new one, brings an older one up to this version in one step, and
 * throws for any other and for a damaged one, so that wrong data is never served. What throws has changed nothing.
 */
export function prepareSchema(db: DatabaseSync): void {
  // Before anything is set: some settings are written to the file.
  const version = Number(db.prepare("PRAGMA user_version").get()?.["user_version"]);
  if (version > SCHEMA_VERSION) {
    throw new LaterRecordsError(
      `they have schema version ${version}, this host knows versions up to ${SCHEMA_VERSION}`,
    );
  }
  // A database keeps the way that it was made with.
  if (version === 0) db.exec("PRAGMA auto_vacuum = INCREMENTAL");
  db.exec("PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON");
  const check = db.prepare("PRAGMA quick_check(1)").get();
  if (check?.["quick_check"] !== "ok") throw new Error("the records are damaged (sqlite quick_check failed)");
  if (version !== SCHEMA_VERSION) bringUp(db, version);
  shrinkable(db);
}

function bringUp(db: DatabaseSync, from: number): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    if (from === 0) db.exec(TABLES);
    else migrate(db, from);
    db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
  } catch (cause) {
    if (db.isTransaction) db.exec("ROLLBACK");
    const why = cause instanceof Error ? cause.message : String(cause);
    const move = `from schema version ${from} to ${SCHEMA_VERSION}`;
    throw new Error(`they could not be brought ${move} and are as they were: ${why}`, { cause });
  }
}

function migrate(db: DatabaseSync, from: number): void {
  for (let version = from; version !== SCHEMA_VERSION; version += 1) {
    const step = MIGRATIONS[version];
    if (step === undefined) throw new Error(`this host has no step from schema version ${version}`);
    step(db);
  }
}

const INCREMENTAL = 2;

/** A database of an older version gives back no space until it has been rewritten once. Without room for that it stays so. */
function shrinkable(db: DatabaseSync): void {
  if (db.prepare("PRAGMA auto_vacuum").get()?.["auto_vacuum"] === INCREMENTAL) return;
  try {
    db.exec("PRAGMA auto_vacuum = INCREMENTAL; VACUUM");
  } catch {
    // The next start tries again.
  }
}
