import { DatabaseSync } from "node:sqlite";
import { serveDatabase, type ServedDatabase } from "@turnbox/core/sqlite";
import { DeadFiles } from "./dead-files.ts";
import { operations } from "./operation.ts";
import { resultDirectory } from "./result-directory.ts";
import { prepareSchema } from "./schema.ts";

// The thread that owns the records.

/** Pages that are free and may stay so: what comes next uses them. */
const MAX_FREE_PAGES = 512;

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
  return {
    db,
    run: (name, input) => table[name]?.run(db, input as never),
    durability: (name) => (table[name]?.durability === "full" ? "full" : "normal"),
    tend: () => {
      // Files that cannot be removed now are tried again after the next change; nothing depends on it.
      deadFiles.bury();
      if (Number(freePages.get()?.["freelist_count"] ?? 0) <= MAX_FREE_PAGES) return;
      // The file itself shrinks when the log is taken into it.
      db.exec("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)");
    },
  };
});
