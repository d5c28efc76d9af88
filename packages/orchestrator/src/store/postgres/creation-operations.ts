import { toSandbox } from "../rows.ts";
import type {
  CreateBegin,
  CreateBegun,
  CreateFinish,
  SandboxPlacing,
  SandboxRow,
  SandboxWithdrawal,
  Store,
} from "../store.ts";
import { MetAnother } from "./failure.ts";
import { beginKey, dropPlannedKey, finishKey, lockKey } from "./idempotency-operations.ts";
import type { Query, Transactions } from "./transactions.ts";

type CreationOperations = Pick<Store, "beginCreate" | "placeSandbox" | "finishCreate" | "withdrawSandbox">;

/** The steps of a create. All lock the key before the row, so that two of them wait for each other in one order. */
export function createCreationOperations({ write }: Transactions): CreationOperations {
  return {
    beginCreate: (begin, call) => write((query) => beginCreate(query, begin), call),
    placeSandbox: (placed, call) => write((query) => placeSandbox(query, placed), call),
    finishCreate: (finish, call) => write((query) => finishCreate(query, finish), call),
    withdrawSandbox: (withdrawn, call) => write((query) => withdraw(query, withdrawn), call),
  };
}

async function beginCreate(query: Query, { row, key }: CreateBegin): Promise<CreateBegun> {
  const state = key === undefined ? undefined : await beginKey(query, { ...key, plan: row.sessionId });
  if (state?.kind === "done" || state?.kind === "conflict") return state;
  const planned = state?.kind === "pending" ? { ...row, sessionId: state.plan, instanceId: undefined } : row;
  const reserved = await reserve(query, planned);
  if ("by" in reserved) {
    if (key !== undefined) await dropPlannedKey(query, { ...key, plan: planned.sessionId });
    return { kind: "name_taken", by: reserved.by };
  }
  return state?.kind === "pending" ? { kind: "resumed", row: reserved.row } : { kind: "reserved" };
}

/** The insert waits for a transaction that reserves the same id or name at this moment. */
async function reserve(
  query: Query,
  row: SandboxRow,
): Promise<{ readonly row: SandboxRow } | { readonly by: SandboxRow }> {
  const { sessionId, tenant, name, labels, instanceId, phase, createdAtMs } = row;
  const [inserted] = await query(
    `INSERT INTO sandboxes (session_id, tenant, name, labels, instance_id, phase, created_at_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING session_id`,
    [sessionId, tenant, name ?? null, JSON.stringify(labels), instanceId ?? null, phase, createdAtMs],
  );
  if (inserted !== undefined) return { row };
  const [known] = await query("SELECT * FROM sandboxes WHERE session_id = $1", [sessionId]);
  if (known !== undefined) return { row: toSandbox(known) };
  const [by] = await query("SELECT * FROM sandboxes WHERE tenant = $1 AND name = $2", [tenant, name ?? null]);
  if (by === undefined) throw new MetAnother("the sandbox in the way was deleted at the same time");
  return { by: toSandbox(by) };
}

async function placeSandbox(
  query: Query,
  { sessionId, instanceId, from }: SandboxPlacing,
): Promise<"placed" | "changed"> {
  const placed = await query(
    `UPDATE sandboxes
     SET phase = CASE WHEN instance_id = $1 AND phase = 'created' THEN phase ELSE 'creating' END, instance_id = $1
     WHERE session_id = $2 AND (instance_id IS NOT DISTINCT FROM $3 OR instance_id = $1)
     RETURNING session_id`,
    [instanceId, sessionId, from ?? null],
  );
  return placed.length === 0 ? "changed" : "placed";
}

async function finishCreate(query: Query, finish: CreateFinish): Promise<"finished" | "changed"> {
  const { sessionId, instanceId, key, result } = finish;
  if (key !== undefined && (await lockKey(query, key)) !== sessionId) return "changed";
  const marked = await query(
    "UPDATE sandboxes SET phase = 'created' WHERE session_id = $1 AND instance_id = $2 RETURNING session_id",
    [sessionId, instanceId],
  );
  if (marked.length === 0) return "changed";
  if (key !== undefined) await finishKey(query, { ...key, plan: sessionId }, result);
  return "finished";
}

async function withdraw(query: Query, withdrawn: SandboxWithdrawal): Promise<"withdrawn" | "changed"> {
  const { sessionId, from, key } = withdrawn;
  if (key !== undefined) await lockKey(query, key);
  const [row] = await query("SELECT instance_id FROM sandboxes WHERE session_id = $1 FOR UPDATE", [sessionId]);
  if (row !== undefined && (row["instance_id"] ?? undefined) !== from) return "changed";
  await query("DELETE FROM sandboxes WHERE session_id = $1", [sessionId]);
  if (key !== undefined) await dropPlannedKey(query, { ...key, plan: sessionId });
  return "withdrawn";
}
