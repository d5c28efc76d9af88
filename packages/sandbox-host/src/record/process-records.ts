import type { DatabaseSync } from "node:sqlite";
import type { ProcessRow, ReceiptRow } from "./row.ts";

export const TABLE_OF_PROCESSES = `
  CREATE TABLE processes (token TEXT NOT NULL, process_id TEXT NOT NULL, row TEXT NOT NULL,
    PRIMARY KEY (token, process_id)) STRICT;
`;

/** The process as it is now. */
export function putProcess(db: DatabaseSync, row: ProcessRow): void {
  db.prepare(
    `INSERT INTO processes (token, process_id, row) VALUES (?, ?, ?)
     ON CONFLICT (token, process_id) DO UPDATE SET row = excluded.row`,
  ).run(row.token, row.processId, JSON.stringify(row));
}

/** Forgets a process, and the receipt of a launch that started nothing. */
export function forgetProcess(
  db: DatabaseSync,
  input: {
    readonly token: string;
    readonly processId: string;
    readonly receipt?: Pick<ReceiptRow, "scope" | "key"> | undefined;
  },
): void {
  db.prepare("DELETE FROM processes WHERE token = ? AND process_id = ?").run(input.token, input.processId);
  if (input.receipt === undefined) return;
  db.prepare("DELETE FROM receipts WHERE scope = ? AND key = ?").run(input.receipt.scope, input.receipt.key);
}

/** Of all sessions, oldest first. */
export function listProcesses(db: DatabaseSync, _: null): readonly ProcessRow[] {
  const rows = db.prepare("SELECT row FROM processes ORDER BY rowid").all();
  return rows.map(({ row }) => JSON.parse(String(row)) as ProcessRow);
}
