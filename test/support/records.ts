import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

export interface SeenRow {
  readonly id: string;
  readonly token: string;
  readonly container: string | null;
  readonly phase: { readonly kind: string; readonly readyIn?: string };
}

/** What a host has written down, read beside the running host. */
export interface SeenRecords {
  readonly sessions: readonly SeenRow[];
  readonly snapshots: readonly { readonly id: string; readonly token: string; readonly name: string }[];
  readonly husks: readonly string[];
  readonly intents: readonly unknown[];
}

export function readRecords(dataDirectory: string): SeenRecords {
  const db = new DatabaseSync(join(dataDirectory, "host.db"), { readOnly: true });
  try {
    const rows = (table: string): readonly Record<string, unknown>[] =>
      db
        .prepare(`SELECT row FROM ${table}`)
        .all()
        .map(({ row }) => JSON.parse(String(row)) as Record<string, unknown>);
    return {
      sessions: rows("sessions") as unknown as SeenRecords["sessions"],
      snapshots: rows("snapshots") as unknown as SeenRecords["snapshots"],
      husks: rows("husks").map(({ token }) => String(token)),
      intents: rows("intents"),
    };
  } finally {
    db.close();
  }
}
