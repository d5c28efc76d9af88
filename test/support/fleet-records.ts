import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** The session id that a create under this key was begun with; undefined before it is on record. */
export function plannedSession(home: string, key: string): string | undefined {
  const db = new DatabaseSync(join(home, "fleet.db"), { readOnly: true });
  try {
    const row = db.prepare("SELECT plan FROM idempotency WHERE key = ?").get(key);
    return row === undefined ? undefined : String(row["plan"]);
  } finally {
    db.close();
  }
}

/** Writes rows of sandboxes, as many as asked for, into the index of a stopped home. */
export function writeSandboxRows(home: string, count: number, instanceIds: readonly string[]): void {
  const db = new DatabaseSync(join(home, "fleet.db"));
  try {
    db.exec("BEGIN");
    const insert = db.prepare(
      "INSERT INTO sandboxes (session_id, tenant, name, labels, instance_id, phase, created_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)",
    );
    for (let index = 0; index < count; index += 1) {
      const instanceId = instanceIds[index % instanceIds.length] ?? "";
      insert.run(
        `old-${index}`,
        "default",
        `old-name-${index}`,
        "{}",
        instanceId,
        "created",
        1_700_000_000_000 + index,
      );
    }
    db.exec("COMMIT");
  } finally {
    db.close();
  }
}
