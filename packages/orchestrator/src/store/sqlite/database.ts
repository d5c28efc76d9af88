// Runs inside the worker thread.
import { closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/** The name of the error that a file of a later version is refused with, by which it is known outside of the thread. */
export const LATER_STORE = "LaterStore";

/** Marks the file as ours: the letters "tbfl". */
const APPLICATION_ID = 0x7462666c;

/** One entry for each version; an entry never changes once a home may have been written with it. */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE instances (
    instance_id   TEXT PRIMARY KEY,
    admission     TEXT NOT NULL,
    labels        TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE sandboxes (
    session_id    TEXT PRIMARY KEY,
    tenant        TEXT NOT NULL,
    name          TEXT,
    labels        TEXT NOT NULL,
    instance_id   TEXT,
    phase         TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX sandboxes_by_name ON sandboxes (tenant, name) WHERE name IS NOT NULL;
  CREATE INDEX sandboxes_by_tenant ON sandboxes (tenant, session_id);
  CREATE TABLE idempotency (
    tenant        TEXT NOT NULL,
    method        TEXT NOT NULL,
    key           TEXT NOT NULL,
    payload_hash  TEXT NOT NULL,
    plan          TEXT NOT NULL,
    result        TEXT,
    begun_at_ms   INTEGER NOT NULL,
    PRIMARY KEY (tenant, method, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX idempotency_by_time ON idempotency (begun_at_ms);
  `,
  `
  ALTER TABLE instances ADD COLUMN image   TEXT    NOT NULL DEFAULT '';
  ALTER TABLE instances ADD COLUMN drain   TEXT;
  ALTER TABLE instances ADD COLUMN goal    TEXT    NOT NULL DEFAULT 'running';
  ALTER TABLE instances ADD COLUMN ever_answered TEXT NOT NULL DEFAULT 'yes';
  ALTER TABLE instances ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
  CREATE INDEX sandboxes_by_instance ON sandboxes (instance_id, session_id);
  CREATE TABLE lease (
    only_row      INTEGER PRIMARY KEY CHECK (only_row = 1),
    epoch         INTEGER NOT NULL,
    holder        TEXT,
    ttl_ms        INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL
  ) STRICT;
  INSERT INTO lease VALUES (1, 0, NULL, 0, 0);
  CREATE TABLE demands (
    holder          TEXT PRIMARY KEY,
    waiting_creates INTEGER NOT NULL,
    expires_at_ms   INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
];

/**
 * Opens the file and brings it to the newest version. A file of a newer version, of another program, or with damage is
 * refused and left as it is.
 */
export function openDatabase(path: string): DatabaseSync {
  // SQLite gives its side files the mode of the main one.
  closeSync(openSync(path, "a", 0o600));
  const database = new DatabaseSync(path);
  try {
    prepare(database);
    return database;
  } catch (cause) {
    database.close();
    throw refusalOf(cause);
  }
}

function prepare(database: DatabaseSync): void {
  const version = readPragma(database, "user_version");
  const application = readPragma(database, "application_id");
  const objects = Number(database.prepare("SELECT count(*) AS n FROM sqlite_schema").get()?.["n"] ?? 0);
  if (application !== APPLICATION_ID && (objects > 0 || version > 0)) {
    throw new Error("the file is a database of another program");
  }
  if (version > MIGRATIONS.length) {
    const refusal = new Error(
      `the file has version ${version}; this program knows versions up to ${MIGRATIONS.length}`,
    );
    refusal.name = LATER_STORE;
    throw refusal;
  }
  const check = database.prepare("PRAGMA quick_check(1)").get()?.["quick_check"];
  if (check !== "ok") throw new Error(`the file is damaged: ${String(check)}`);
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;");
  migrate(database, version);
}

function migrate(database: DatabaseSync, from: number): void {
  if (from === MIGRATIONS.length) return;
  database.exec("BEGIN IMMEDIATE");
  for (const migration of MIGRATIONS.slice(from)) database.exec(migration);
  database.exec(`PRAGMA application_id = ${String(APPLICATION_ID)}`);
  database.exec(`PRAGMA user_version = ${String(MIGRATIONS.length)}`);
  database.exec("COMMIT");
}

function readPragma(database: DatabaseSync, name: "user_version" | "application_id"): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
}

const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

function refusalOf(cause: unknown): unknown {
  if (!(cause instanceof Error) || !("errcode" in cause)) return cause;
  const code = Number(cause.errcode) & 0xff;
  if (code !== SQLITE_CORRUPT && code !== SQLITE_NOTADB) return cause;
  return new Error(`the file is damaged: ${cause.message}`);
}
