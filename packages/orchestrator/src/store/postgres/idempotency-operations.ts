import {
  IDEMPOTENCY_RETENTION_MS,
  type IdempotencyBegin,
  type IdempotencyFinish,
  type IdempotencyRef,
  type IdempotencyState,
  type Store,
} from "../store.ts";
import { MetAnother } from "./failure.ts";
import type { Query, Transactions } from "./transactions.ts";

type IdempotencyOperations = Pick<
  Store,
  "beginIdempotent" | "finishIdempotent" | "abandonIdempotent" | "expireIdempotent"
>;

/** Longer than any caller goes on trying. */
const MARKS_KEPT = "1 hour";
const THIS_KEY = "tenant = $1 AND method = $2 AND key = $3";

/** The keys of requests and what came of them. */
export function createIdempotencyOperations({ write }: Transactions): IdempotencyOperations {
  return {
    beginIdempotent: (begin, call) => write((query) => beginKey(query, begin), call),
    finishIdempotent: (finish, result, call) => write((query) => finishKey(query, finish, result), call),
    abandonIdempotent: ({ tenant, method, key }, call) =>
      write(async (query) => {
        await query(`DELETE FROM idempotency WHERE ${THIS_KEY} AND result IS NULL`, [tenant, method, key]);
      }, call),
    expireIdempotent: (nowMs, call) =>
      write(async (query) => {
        await query(`DELETE FROM marks WHERE made_at < clock_timestamp() - interval '${MARKS_KEPT}'`);
        const [row] = await query(
          `WITH gone AS (DELETE FROM idempotency WHERE begun_at_ms <= $1 RETURNING 1) SELECT count(*) AS count FROM gone`,
          [nowMs - IDEMPOTENCY_RETENTION_MS],
        );
        return Number(row?.["count"]);
      }, call),
  };
}

/** The insert waits for a transaction that begins under the same key at this moment; an outdated key is written over. */
export async function beginKey(query: Query, begin: IdempotencyBegin): Promise<IdempotencyState> {
  const { tenant, method, key, payloadHash, plan, nowMs } = begin;
  const [begun] = await query(
    `INSERT INTO idempotency AS old (tenant, method, key, payload_hash, plan, result, begun_at_ms)
     VALUES ($1, $2, $3, $4, $5, NULL, $6)
     ON CONFLICT (tenant, method, key) DO UPDATE
       SET payload_hash = excluded.payload_hash, plan = excluded.plan, result = NULL, begun_at_ms = excluded.begun_at_ms
       WHERE old.begun_at_ms + $7 <= excluded.begun_at_ms
     RETURNING key`,
    [tenant, method, key, payloadHash, plan, nowMs, IDEMPOTENCY_RETENTION_MS],
  );
  if (begun !== undefined) return { kind: "begun" };
  const [row] = await query(`SELECT payload_hash, plan, result FROM idempotency WHERE ${THIS_KEY}`, [
    tenant,
    method,
    key,
  ]);
  if (row === undefined) throw new MetAnother("the key was abandoned at the same time");
  if (row["payload_hash"] !== payloadHash) return { kind: "conflict" };
  if (typeof row["result"] === "string") return { kind: "done", result: row["result"] };
  return { kind: "pending", plan: String(row["plan"]) };
}

export async function finishKey(
  query: Query,
  { tenant, method, key, plan }: IdempotencyFinish,
  result: string,
): Promise<"finished" | "changed"> {
  const finished = await query(
    `UPDATE idempotency SET result = COALESCE(result, $4) WHERE ${THIS_KEY} AND plan = $5 RETURNING key`,
    [tenant, method, key, result, plan],
  );
  return finished.length === 0 ? "changed" : "finished";
}

/** Holds the key until the end of the transaction. Returns the plan that it was begun under; undefined if it is not there. */
export async function lockKey(query: Query, { tenant, method, key }: IdempotencyRef): Promise<string | undefined> {
  const [row] = await query(`SELECT plan FROM idempotency WHERE ${THIS_KEY} FOR UPDATE`, [tenant, method, key]);
  return row === undefined ? undefined : String(row["plan"]);
}

/** Frees a key that has no result, if it was begun under this plan. */
export async function dropPlannedKey(query: Query, { tenant, method, key, plan }: IdempotencyFinish): Promise<void> {
  await query(`DELETE FROM idempotency WHERE ${THIS_KEY} AND plan = $4 AND result IS NULL`, [
    tenant,
    method,
    key,
    plan,
  ]);
}
