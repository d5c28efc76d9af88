// Runs inside the worker thread: only node's own modules and relative imports.
import type { DatabaseSync } from "node:sqlite";
import type {
  IdempotencyBegin,
  IdempotencyFinish,
  IdempotencyRef,
  IdempotencyState,
  Reservation,
  SandboxNameQuery,
  SandboxPlacing,
  SandboxQuery,
  SandboxRow,
  SandboxWithdrawal,
} from "../store.ts";
import { createFleetOperations } from "./fleet-operations.ts";
import { type Row, toSandbox } from "../rows.ts";
import { createTransaction } from "./transaction.ts";

/** The store's operations in SQL, each one transaction. `retentionMs` is how long an idempotency key is kept. */
export function createOperations(database: DatabaseSync, retentionMs: number) {
  const sql = (text: string) => database.prepare(text);
  const insertSandbox = sql(
    `INSERT INTO sandboxes (session_id, tenant, name, labels, instance_id, phase, created_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const placeSandbox = sql(
    `UPDATE sandboxes SET phase = CASE WHEN instance_id = ?1 AND phase = 'created' THEN phase ELSE ?2 END, instance_id = ?1
     WHERE session_id = ?3 AND (instance_id IS ?4 OR instance_id = ?1)`,
  );
  const sandboxById = sql("SELECT * FROM sandboxes WHERE session_id = ?");
  const sandboxesByIds = sql("SELECT * FROM sandboxes WHERE session_id IN (SELECT value FROM json_each(?))");
  const sandboxesByReference = sql("SELECT * FROM sandboxes WHERE tenant = ? AND (name = ? OR session_id = ?)");
  const sandboxByName = sql("SELECT * FROM sandboxes WHERE tenant = ? AND name = ?");
  const pageOfSandboxes = sql(
    `SELECT * FROM sandboxes WHERE tenant = ?1 AND session_id > ?2 AND (?3 IS NULL OR instance_id = ?3)
     ORDER BY session_id LIMIT ?4`,
  );
  const deleteSandbox = sql("DELETE FROM sandboxes WHERE session_id = ?");
  const keyRow = sql("SELECT * FROM idempotency WHERE tenant = ? AND method = ? AND key = ?");
  const putKey = sql(
    `INSERT OR REPLACE INTO idempotency (tenant, method, key, payload_hash, plan, result, begun_at_ms)
     VALUES (?, ?, ?, ?, ?, NULL, ?)`,
  );
  const finishKey = sql(
    `UPDATE idempotency SET result = COALESCE(result, ?) WHERE tenant = ? AND method = ? AND key = ? AND plan = ?`,
  );
  const dropKey = sql("DELETE FROM idempotency WHERE tenant = ? AND method = ? AND key = ? AND result IS NULL");
  const dropPlannedKey = sql(
    "DELETE FROM idempotency WHERE tenant = ? AND method = ? AND key = ? AND plan = ? AND result IS NULL",
  );
  const expireKeys = sql("DELETE FROM idempotency WHERE begun_at_ms <= ?");

  const transaction = createTransaction(database);
  const sandbox = (row: Row | undefined): SandboxRow | undefined => (row === undefined ? undefined : toSandbox(row));

  return {
    ...createFleetOperations(database),
    reserveSandbox: (row: SandboxRow): Reservation =>
      transaction(() => {
        if (sandboxById.get(row.sessionId) !== undefined) return { kind: "reserved" };
        const by = row.name === undefined ? undefined : sandbox(sandboxByName.get(row.tenant, row.name));
        if (by !== undefined) return { kind: "name_taken", by };
        insertSandbox.run(
          row.sessionId,
          row.tenant,
          row.name ?? null,
          JSON.stringify(row.labels),
          row.instanceId ?? null,
          row.phase,
          row.createdAtMs,
        );
        return { kind: "reserved" };
      }),
    placeSandbox: ({ sessionId, instanceId, phase, from }: SandboxPlacing): "placed" | "changed" => {
      const { changes } = placeSandbox.run(instanceId, phase, sessionId, from ?? null);
      return Number(changes) === 0 ? "changed" : "placed";
    },
    withdrawSandbox: ({ sessionId, from, key }: SandboxWithdrawal): "withdrawn" | "changed" =>
      transaction(() => {
        const row = sandbox(sandboxById.get(sessionId));
        if (row !== undefined && row.instanceId !== from) return "changed";
        deleteSandbox.run(sessionId);
        if (key !== undefined) dropPlannedKey.run(key.tenant, key.method, key.key, sessionId);
        return "withdrawn";
      }),
    getSandbox: (sessionId: string): SandboxRow | undefined => sandbox(sandboxById.get(sessionId)),
    findSandboxes: ({ tenant, name }: SandboxNameQuery): readonly SandboxRow[] =>
      sandboxesByReference.all(tenant, name, name).map(toSandbox),
    getSandboxes: (sessionIds: readonly string[]): readonly SandboxRow[] =>
      sandboxesByIds.all(JSON.stringify(sessionIds)).map(toSandbox),
    listSandboxes: (query: SandboxQuery): readonly SandboxRow[] =>
      pageOfSandboxes.all(query.tenant, query.after, query.instanceId ?? null, query.limit).map(toSandbox),
    deleteSandbox: (sessionId: string): void => {
      deleteSandbox.run(sessionId);
    },
    beginIdempotent: (begin: IdempotencyBegin): IdempotencyState =>
      transaction(() => {
        const row = keyRow.get(begin.tenant, begin.method, begin.key);
        if (row === undefined || Number(row["begun_at_ms"]) + retentionMs <= begin.nowMs) {
          putKey.run(begin.tenant, begin.method, begin.key, begin.payloadHash, begin.plan, begin.nowMs);
          return { kind: "begun" };
        }
        if (row["payload_hash"] !== begin.payloadHash) return { kind: "conflict" };
        if (row["result"] === null) return { kind: "pending", plan: String(row["plan"]) };
        return { kind: "done", result: String(row["result"]) };
      }),
    finishIdempotent: ({ tenant, method, key, plan }: IdempotencyFinish, result: string): "finished" | "changed" =>
      Number(finishKey.run(result, tenant, method, key, plan).changes) === 0 ? "changed" : "finished",
    abandonIdempotent: (ref: IdempotencyRef): void => {
      dropKey.run(ref.tenant, ref.method, ref.key);
    },
    expireIdempotent: (nowMs: number): number => Number(expireKeys.run(nowMs - retentionMs).changes),
  };
}

export type StoreOperations = ReturnType<typeof createOperations>;
