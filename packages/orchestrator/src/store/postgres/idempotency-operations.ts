import { IDEMPOTENCY_RETENTION_MS, type IdempotencyBegin, type IdempotencyState, type Store } from "../store.ts";
import { MetAnother } from "./failure.ts";
import type { Query, Transactions } from "./transactions.ts";

type IdempotencyOperations = Pick<
  Store,
  "beginIdempotent" | "finishIdempotent" | "abandonIdempotent" | "expireIdempotent"
>;

/** Longer than anybody goes on trying. */
const MARKS_KEPT = "1 hour";
const THIS_KEY = "tenant = $1 AND method = $2 AND key = $3";

/** The keys of requests and what came of them. */
export function createIdempotencyOperations({ write }: Transactions): IdempotencyOperations {
  return {
    beginIdempotent: (begin, call) => write((query) => beginKey(query, begin), call),
    finishIdempotent: ({ tenant, method, key, plan }, result, call) =>
      write(async (query) => {
        const finished = await query(
          `UPDATE idempotency SET result = COALESCE(result, $4) WHERE ${THIS_KEY} AND plan = $5 RETURNING key`,
          [tenant, method, key, result, plan],
        );
        return finished.length === 0 ? "changed" : "finished";
      }, call),
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

/** The insert waits for whoever begins under the same key at this moment; an outdated key is written over. */
async function beginKey(query: Query, begin: IdempotencyBegin): Promise<IdempotencyState> {
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
