import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { serveDatabase, type ServedDatabase } from "@turnbox/core/sqlite";
import { DeadFiles } from "./dead-files.ts";
import { operations } from "./operation.ts";
import { resultDirectory } from "./result-directory.ts";
import { prepareSchema, SCHEMA_VERSION } from "./schema.ts";

// The thread that owns the records.

/** Pages that are free and may stay so: what comes next uses them. */
const MAX_FREE_PAGES = 512;
/** A longer log is taken into the database. */
const MAX_LOG_BYTES = 4 * 1024 * 1024;

// The input of each operation is checked by the types at the other end of the port.
const table: Readonly<
  Record<string, { readonly durability: string; readonly run: (db: DatabaseSync, input: never) => unknown }>
> = operations;

serveDatabase(({ path }: { readonly path: string }): ServedDatabase => {
  const db = new DatabaseSync(path);
  prepareSchema(db);
  const deadFiles = new DeadFiles(db, resultDirectory(path));
  deadFiles.sweep();
  const freePages = db.prepare("PRAGMA freelist_count");
  /** Begins the log, and flushes its head, with a change that changes nothing: `InlineConnection` never has to. */
  const beginLog = (): void => {
    db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
  };
  db.exec("PRAGMA wal_autocheckpoint = 0; PRAGMA wal_checkpoint(TRUNCATE)");
  beginLog();
  return {
    db,
    run: (name, input) => table[name]?.run(db, input as never),
    durability: (name) => (table[name]?.durability === "full" ? "full" : "normal"),
    tend: () => {
      // Files that cannot be removed now are tried again after the next change; nothing depends on it.
      deadFiles.bury();
      const isLoose = Number(freePages.get()?.["freelist_count"] ?? 0) > MAX_FREE_PAGES;
      if (!isLoose && statSync(`${path}-wal`).size < MAX_LOG_BYTES) return;
      // The file itself shrinks when the log is taken into it.
      if (isLoose) db.exec("PRAGMA incremental_vacuum");
      db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      beginLog();
    },
  };
});
