// Runs inside the worker thread.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { IdempotencyBegin, IdempotencyFinish, IdempotencyRef, IdempotencyState } from "../store.ts";

/** The keys of requests and what came of them. None of these is a transaction of its own. */
export class Keys {
  readonly #retentionMs: number;
  readonly #find: StatementSync;
  readonly #put: StatementSync;
  readonly #finish: StatementSync;
  readonly #drop: StatementSync;
  readonly #dropPlanned: StatementSync;
  readonly #expire: StatementSync;

  /** `retentionMs` is how long a key is kept. */
  constructor(database: DatabaseSync, retentionMs: number) {
    const ofKey = "tenant = ? AND method = ? AND key = ?";
    this.#retentionMs = retentionMs;
    this.#find = database.prepare(`SELECT * FROM idempotency WHERE ${ofKey}`);
    this.#put = database.prepare(
      `INSERT OR REPLACE INTO idempotency (tenant, method, key, payload_hash, plan, result, begun_at_ms)
       VALUES (?, ?, ?, ?, ?, NULL, ?)`,
    );
    this.#finish = database.prepare(`UPDATE idempotency SET result = COALESCE(result, ?) WHERE ${ofKey} AND plan = ?`);
    this.#drop = database.prepare(`DELETE FROM idempotency WHERE ${ofKey} AND result IS NULL`);
    this.#dropPlanned = database.prepare(`DELETE FROM idempotency WHERE ${ofKey} AND plan = ? AND result IS NULL`);
    this.#expire = database.prepare("DELETE FROM idempotency WHERE begun_at_ms <= ?");
  }

  begin({ tenant, method, key, payloadHash, plan, nowMs }: IdempotencyBegin): IdempotencyState {
    const row = this.#find.get(tenant, method, key);
    if (row === undefined || Number(row["begun_at_ms"]) + this.#retentionMs <= nowMs) {
      this.#put.run(tenant, method, key, payloadHash, plan, nowMs);
      return { kind: "begun" };
    }
    if (row["payload_hash"] !== payloadHash) return { kind: "conflict" };
    if (row["result"] === null) return { kind: "pending", plan: String(row["plan"]) };
    return { kind: "done", result: String(row["result"]) };
  }

  finish({ tenant, method, key, plan }: IdempotencyFinish, result: string): "finished" | "changed" {
    return Number(this.#finish.run(result, tenant, method, key, plan).changes) === 0 ? "changed" : "finished";
  }

  /** Frees a key that has no result. */
  drop({ tenant, method, key }: IdempotencyRef): void {
    this.#drop.run(tenant, method, key);
  }

  /** Frees a key that has no result, if it was begun under this plan. */
  dropPlanned({ tenant, method, key, plan }: IdempotencyFinish): void {
    this.#dropPlanned.run(tenant, method, key, plan);
  }

  expire(nowMs: number): number {
    return Number(this.#expire.run(nowMs - this.#retentionMs).changes);
  }
}
