import type { DatabaseSync } from "node:sqlite";
import { fairCap } from "./fair-cap.ts";

/** How many results of idempotent requests may be kept. */
export interface ReceiptBounds {
  readonly count: number;
  readonly bytes: number;
}

interface Held {
  /** What the scopes of its receipts begin with: the token of a session, or a tenant. */
  readonly owner: string;
  readonly count: number;
  readonly bytes: number;
}

const OWNER = "substr(scope, 1, instr(scope, '/') - 1)";
const BYTES = "(octet_length(scope) + octet_length(key) + octet_length(payload_hash) + octet_length(result))";
/** Scopes of one owner: `/` and what follows it in the alphabet. */
const OF_OWNER = "scope >= ? || '/' AND scope < ? || '0'";

/** Forgets the receipts of a session that is gone: its requests are refused before they are looked up. */
export function forgetReceipts(db: DatabaseSync, owner: string): void {
  db.prepare(`DELETE FROM receipts WHERE ${OF_OWNER}`).run(owner, owner);
}

/**
 * Drops receipts older than their retention. Of the rest a session keeps the newest within its bounds, and all together
 * stay within theirs: who has most loses its oldest first.
 */
export function keepReceipts(
  db: DatabaseSync,
  input: { readonly beforeMs: number; readonly session: ReceiptBounds; readonly host: ReceiptBounds },
): void {
  db.prepare("DELETE FROM receipts WHERE at_ms < ?").run(input.beforeMs);
  const isSession = db.prepare("SELECT 1 FROM sessions WHERE token = ?");
  for (const held of list(db)) {
    if (isSession.get(held.owner) !== undefined) trim(db, held, input.session);
  }
  const rest = list(db);
  const cap = {
    count: fairCap(
      rest.map(({ count }) => count),
      input.host.count,
    ),
    bytes: fairCap(
      rest.map(({ bytes }) => bytes),
      input.host.bytes,
    ),
  };
  for (const held of rest) trim(db, held, cap);
}

function list(db: DatabaseSync): readonly Held[] {
  return db
    .prepare(`SELECT ${OWNER} AS owner, count(*) AS count, sum(${BYTES}) AS bytes FROM receipts GROUP BY 1`)
    .all()
    .map(({ owner, count, bytes }) => ({ owner: String(owner), count: Number(count), bytes: Number(bytes) }));
}

function trim(db: DatabaseSync, { owner, count, bytes }: Held, bounds: ReceiptBounds): void {
  if (count <= bounds.count && bytes <= bounds.bytes) return;
  const newestFirst = db
    .prepare(`SELECT rowid, ${BYTES} AS bytes FROM receipts WHERE ${OF_OWNER} ORDER BY at_ms DESC, rowid DESC`)
    .all(owner, owner);
  const drop = db.prepare("DELETE FROM receipts WHERE rowid = ?");
  let keptBytes = 0;
  for (const [index, row] of newestFirst.entries()) {
    keptBytes += Number(row["bytes"]);
    if (index >= bounds.count || keptBytes > bounds.bytes) drop.run(Number(row["rowid"]));
  }
}
