// Runs inside the worker thread.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type Row, toSandbox } from "../rows.ts";
import type { SandboxNameQuery, SandboxPlacing, SandboxQuery, SandboxRow } from "../store.ts";

const toRow = (row: Row | undefined): SandboxRow | undefined => (row === undefined ? undefined : toSandbox(row));

/** The index of sandboxes. None of these is a transaction of its own. */
export class Sandboxes {
  readonly #insert: StatementSync;
  readonly #placeSandbox: StatementSync;
  readonly #markCreated: StatementSync;
  readonly #byId: StatementSync;
  readonly #byIds: StatementSync;
  readonly #byName: StatementSync;
  readonly #byReference: StatementSync;
  readonly #page: StatementSync;
  readonly #delete: StatementSync;

  constructor(database: DatabaseSync) {
    this.#insert = database.prepare(
      `INSERT INTO sandboxes (session_id, tenant, name, labels, instance_id, phase, created_at_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#placeSandbox = database.prepare(
      `UPDATE sandboxes
       SET phase = CASE WHEN instance_id = ?1 AND phase = 'created' THEN phase ELSE 'creating' END, instance_id = ?1
       WHERE session_id = ?2 AND (instance_id IS ?3 OR instance_id = ?1)`,
    );
    this.#markCreated = database.prepare("UPDATE sandboxes SET phase = 'created' WHERE session_id = ?");
    this.#byId = database.prepare("SELECT * FROM sandboxes WHERE session_id = ?");
    this.#byIds = database.prepare("SELECT * FROM sandboxes WHERE session_id IN (SELECT value FROM json_each(?))");
    this.#byName = database.prepare("SELECT * FROM sandboxes WHERE tenant = ? AND name = ?");
    this.#byReference = database.prepare("SELECT * FROM sandboxes WHERE tenant = ? AND (name = ? OR session_id = ?)");
    this.#page = database.prepare(
      `SELECT * FROM sandboxes WHERE tenant = ?1 AND session_id > ?2 AND (?3 IS NULL OR instance_id = ?3)
       ORDER BY session_id LIMIT ?4`,
    );
    this.#delete = database.prepare("DELETE FROM sandboxes WHERE session_id = ?");
  }

  /** Puts the row in unless one of its session id is there. Returns the row of that id, or the one that has its name. */
  reserve(row: SandboxRow): { readonly row: SandboxRow } | { readonly by: SandboxRow } {
    const known = this.get(row.sessionId);
    if (known !== undefined) return { row: known };
    const by = row.name === undefined ? undefined : toRow(this.#byName.get(row.tenant, row.name));
    if (by !== undefined) return { by };
    const { sessionId, tenant, name, labels, instanceId, phase, createdAtMs } = row;
    this.#insert.run(sessionId, tenant, name ?? null, JSON.stringify(labels), instanceId ?? null, phase, createdAtMs);
    return { row };
  }

  placeSandbox({ sessionId, instanceId, from }: SandboxPlacing): "placed" | "changed" {
    return Number(this.#placeSandbox.run(instanceId, sessionId, from ?? null).changes) === 0 ? "changed" : "placed";
  }

  markCreated(sessionId: string): void {
    this.#markCreated.run(sessionId);
  }

  find({ tenant, name }: SandboxNameQuery): readonly SandboxRow[] {
    return this.#byReference.all(tenant, name, name).map((row) => toSandbox(row));
  }

  get(sessionId: string): SandboxRow | undefined {
    return toRow(this.#byId.get(sessionId));
  }

  getAll(sessionIds: readonly string[]): readonly SandboxRow[] {
    return this.#byIds.all(JSON.stringify(sessionIds)).map(toSandbox);
  }

  list({ tenant, after, instanceId, limit }: SandboxQuery): readonly SandboxRow[] {
    return this.#page.all(tenant, after, instanceId ?? null, limit).map(toSandbox);
  }

  delete(sessionId: string): void {
    this.#delete.run(sessionId);
  }
}
