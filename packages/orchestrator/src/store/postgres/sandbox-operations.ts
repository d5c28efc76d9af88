import { toSandbox } from "../rows.ts";
import type { Reservation, SandboxRow, Store } from "../store.ts";
import { MetAnother } from "./failure.ts";
import type { Query, Transactions } from "./transactions.ts";

type SandboxOperations = Pick<
  Store,
  | "reserveSandbox"
  | "placeSandbox"
  | "withdrawSandbox"
  | "getSandbox"
  | "findSandboxes"
  | "getSandboxes"
  | "listSandboxes"
  | "deleteSandbox"
>;

/** The index of sandboxes. */
export function createSandboxOperations({ read, write }: Transactions): SandboxOperations {
  return {
    reserveSandbox: (row, call) => write((query) => reserve(query, row), call),
    placeSandbox: ({ sessionId, instanceId, phase, from }, call) =>
      write(async (query) => {
        const placed = await query(
          `UPDATE sandboxes
           SET phase = CASE WHEN instance_id = $1 AND phase = 'created' THEN phase ELSE $2 END, instance_id = $1
           WHERE session_id = $3 AND (instance_id IS NOT DISTINCT FROM $4 OR instance_id = $1)
           RETURNING session_id`,
          [instanceId, phase, sessionId, from ?? null],
        );
        return placed.length === 0 ? "changed" : "placed";
      }, call),
    withdrawSandbox: ({ sessionId, from, key }, call) =>
      write(async (query) => {
        const [row] = await query("SELECT instance_id FROM sandboxes WHERE session_id = $1 FOR UPDATE", [sessionId]);
        if (row !== undefined && (row["instance_id"] ?? undefined) !== from) return "changed";
        await query("DELETE FROM sandboxes WHERE session_id = $1", [sessionId]);
        if (key === undefined) return "withdrawn";
        await query(
          "DELETE FROM idempotency WHERE tenant = $1 AND method = $2 AND key = $3 AND plan = $4 AND result IS NULL",
          [key.tenant, key.method, key.key, sessionId],
        );
        return "withdrawn";
      }, call),
    getSandbox: (sessionId, call) => read((query) => findById(query, sessionId), call),
    findSandboxes: ({ tenant, name }, call) =>
      read(async (query) => {
        const condition = "tenant = $1 AND (name = $2 OR session_id = $2)";
        const rows = await query(`SELECT * FROM sandboxes WHERE ${condition}`, [tenant, name]);
        return rows.map(toSandbox);
      }, call),
    getSandboxes: (sessionIds, call) =>
      read(async (query) => {
        const rows = await query("SELECT * FROM sandboxes WHERE session_id = ANY($1::text[])", [sessionIds]);
        return rows.map(toSandbox);
      }, call),
    listSandboxes: ({ tenant, after, instanceId, limit }, call) =>
      read(async (query) => {
        const condition = instanceId === undefined ? "" : "AND instance_id = $4";
        const rows = await query(
          `SELECT * FROM sandboxes WHERE tenant = $1 AND session_id > $2 ${condition} ORDER BY session_id LIMIT $3`,
          [tenant, after, limit, ...(instanceId === undefined ? [] : [instanceId])],
        );
        return rows.map(toSandbox);
      }, call),
    deleteSandbox: (sessionId, call) =>
      write(async (query) => {
        await query("DELETE FROM sandboxes WHERE session_id = $1", [sessionId]);
      }, call),
  };
}

async function findById(query: Query, sessionId: string): Promise<SandboxRow | undefined> {
  const [row] = await query("SELECT * FROM sandboxes WHERE session_id = $1", [sessionId]);
  return row === undefined ? undefined : toSandbox(row);
}

/** The insert waits for whoever reserves the same id or name at this moment. */
async function reserve(query: Query, row: SandboxRow): Promise<Reservation> {
  const [inserted] = await query(
    `INSERT INTO sandboxes (session_id, tenant, name, labels, instance_id, phase, created_at_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING session_id`,
    [
      row.sessionId,
      row.tenant,
      row.name ?? null,
      JSON.stringify(row.labels),
      row.instanceId ?? null,
      row.phase,
      row.createdAtMs,
    ],
  );
  if (inserted !== undefined || (await findById(query, row.sessionId)) !== undefined) return { kind: "reserved" };
  const [by] = await query("SELECT * FROM sandboxes WHERE tenant = $1 AND name = $2", [row.tenant, row.name ?? null]);
  if (by === undefined) throw new MetAnother("the sandbox in the way was deleted at the same time");
  return { kind: "name_taken", by: toSandbox(by) };
}
