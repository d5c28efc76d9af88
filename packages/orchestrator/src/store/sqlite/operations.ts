// Runs inside the worker thread: only node's own modules and relative imports.
import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import type {
  IdempotencyBegin,
  IdempotencyRef,
  IdempotencyState,
  InstanceRow,
  Reservation,
  SandboxQuery,
  SandboxRow,
} from "../store.ts";

type Row = Record<string, SQLOutputValue>;

const toInstance = (row: Row): InstanceRow => ({
  instanceId: String(row["instance_id"]),
  admission: row["admission"] === "cordoned" ? "cordoned" : "open",
  labels: JSON.parse(String(row["labels"])) as Record<string, string>,
  createdAtMs: Number(row["created_at_ms"]),
});

const toSandbox = (row: Row): SandboxRow => ({
  sessionId: String(row["session_id"]),
  tenant: String(row["tenant"]),
  name: row["name"] === null ? undefined : String(row["name"]),
  labels: JSON.parse(String(row["labels"])) as Record<string, string>,
  instanceId: row["instance_id"] === null ? undefined : String(row["instance_id"]),
  phase: row["phase"] === "created" ? "created" : "creating",
  createdAtMs: Number(row["created_at_ms"]),
});

/** The store's operations in SQL, each one transaction. `retentionMs` is how long an idempotency key is kept. */
export function createOperations(database: DatabaseSync, retentionMs: number) {
  const sql = (text: string) => database.prepare(text);
  const putInstance = sql(
    `INSERT INTO instances (instance_id, admission, labels, created_at_ms) VALUES (?, ?, ?, ?)
     ON CONFLICT (instance_id) DO UPDATE SET admission = excluded.admission, labels = excluded.labels`,
  );
  const listInstances = sql("SELECT * FROM instances ORDER BY instance_id");
  const deleteInstance = sql("DELETE FROM instances WHERE instance_id = ?");
  const insertSandbox = sql(
    `INSERT INTO sandboxes (session_id, tenant, name, labels, instance_id, phase, created_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const placeSandbox = sql("UPDATE sandboxes SET instance_id = ?, phase = ? WHERE session_id = ?");
  const sandboxById = sql("SELECT * FROM sandboxes WHERE session_id = ?");
  const sandboxesByIds = sql("SELECT * FROM sandboxes WHERE session_id IN (SELECT value FROM json_each(?))");
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
    "UPDATE idempotency SET result = ? WHERE tenant = ? AND method = ? AND key = ? AND result IS NULL",
  );
  const dropKey = sql("DELETE FROM idempotency WHERE tenant = ? AND method = ? AND key = ? AND result IS NULL");
  const expireKeys = sql("DELETE FROM idempotency WHERE begun_at_ms <= ?");

  const transaction = <T>(work: () => T): T => {
    database.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      database.exec("COMMIT");
      return result;
    } catch (error) {
      database.exec("ROLLBACK");
      throw error;
    }
  };
  const sandbox = (row: Row | undefined): SandboxRow | undefined => (row === undefined ? undefined : toSandbox(row));

  return {
    putInstance: (row: InstanceRow): void => {
      putInstance.run(row.instanceId, row.admission, JSON.stringify(row.labels), row.createdAtMs);
    },
    listInstances: (): readonly InstanceRow[] => listInstances.all().map(toInstance),
    deleteInstance: (instanceId: string): void => {
      deleteInstance.run(instanceId);
    },
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
    placeSandbox: (placed: Pick<SandboxRow, "sessionId" | "phase"> & { readonly instanceId: string }): void => {
      placeSandbox.run(placed.instanceId, placed.phase, placed.sessionId);
    },
    getSandbox: (sessionId: string): SandboxRow | undefined => sandbox(sandboxById.get(sessionId)),
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
    finishIdempotent: (ref: IdempotencyRef, result: string): void => {
      finishKey.run(result, ref.tenant, ref.method, ref.key);
    },
    abandonIdempotent: (ref: IdempotencyRef): void => {
      dropKey.run(ref.tenant, ref.method, ref.key);
    },
    expireIdempotent: (nowMs: number): number => Number(expireKeys.run(nowMs - retentionMs).changes),
  };
}

export type StoreOperations = ReturnType<typeof createOperations>;
