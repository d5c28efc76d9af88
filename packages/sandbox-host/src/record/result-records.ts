import type { DatabaseSync } from "node:sqlite";
import { prepared } from "./prepared.ts";

/**
 * Results of calls and what they take. `result_bytes` is what a result is charged with; a result of which only the stub is
 * left is charged with nothing. A file whose row has gone is in `dead_files` until it is removed.
 */
export const TABLES_OF_RESULTS = `
  CREATE TABLE calls (token TEXT NOT NULL, call_id TEXT NOT NULL, payload_hash TEXT NOT NULL, generation INTEGER NOT NULL,
    status TEXT NOT NULL, at_ms INTEGER NOT NULL, head_generation INTEGER NOT NULL DEFAULT 0,
    start_tick INTEGER NOT NULL DEFAULT 0, end_tick INTEGER, result_bytes INTEGER NOT NULL DEFAULT 0, result_file TEXT,
    result TEXT, PRIMARY KEY (token, call_id)) STRICT;
  CREATE INDEX calls_by_time ON calls (at_ms);
  CREATE UNIQUE INDEX calls_by_file ON calls (result_file) WHERE result_file IS NOT NULL;
  CREATE TABLE dead_files (name TEXT PRIMARY KEY) STRICT;
  CREATE TRIGGER file_of_call_gone AFTER DELETE ON calls WHEN old.result_file IS NOT NULL BEGIN
    INSERT OR IGNORE INTO dead_files (name) VALUES (old.result_file);
  END;
  CREATE TRIGGER file_of_call_dropped AFTER UPDATE OF result_file ON calls
    WHEN old.result_file IS NOT NULL AND new.result_file IS NOT old.result_file BEGIN
    INSERT OR IGNORE INTO dead_files (name) VALUES (old.result_file);
  END;
`;

/** What the results of each session take, by its token. */
export function resultBytes(db: DatabaseSync, _: null): Readonly<Record<string, number>> {
  const rows = db
    .prepare("SELECT token, sum(result_bytes) AS bytes FROM calls WHERE result_bytes > 0 GROUP BY token")
    .all();
  return Object.fromEntries(rows.map((row) => [String(row["token"]), Number(row["bytes"])]));
}

/**
 * Drops the oldest results of a session until the rest take no more than `keepBytes`. Of each a stub is left, so that the
 * call is known as ended. Returns what the rest take.
 */
export function dropResults(
  db: DatabaseSync,
  { token, keepBytes }: { readonly token: string; readonly keepBytes: number },
): number {
  const newestFirst = db
    .prepare(
      "SELECT rowid, result_bytes FROM calls WHERE token = ? AND result_bytes > 0 ORDER BY at_ms DESC, rowid DESC",
    )
    .all(token);
  const drop = db.prepare(
    `UPDATE calls SET result_bytes = 0, result_file = NULL, result = CASE WHEN result_file IS NULL
       THEN json_remove(json_set(result, '$.content', '', '$.contentDropped', json('true')), '$.blocks') ELSE result END
     WHERE rowid = ?`,
  );
  let keptBytes = 0;
  let isFull = false;
  for (const { rowid, result_bytes: bytes } of newestFirst) {
    isFull ||= keptBytes + Number(bytes) > keepBytes;
    if (isFull) drop.run(Number(rowid));
    else keptBytes += Number(bytes);
  }
  return keptBytes;
}

const BURIED_AT_ONCE = 500;

/** Files whose rows are gone, a part of them at a time. */
export function listDeadFiles(db: DatabaseSync): readonly string[] {
  return prepared(db, "SELECT name FROM dead_files LIMIT ?")
    .all(BURIED_AT_ONCE)
    .map(({ name }) => String(name));
}

export function isFileKnown(db: DatabaseSync, name: string): boolean {
  return prepared(db, "SELECT 1 FROM calls WHERE result_file = ?").get(name) !== undefined;
}
