import type { DatabaseSync } from "node:sqlite";
import { prepared } from "./prepared.ts";
import type { StoredSession } from "./environment-records.ts";
import type { CallPosition, CallRow, KnownCall, SnapshotRow } from "./row.ts";

/**
 * The order of calls and snapshots. A logical clock, the sequence that names of snapshots come from, ticks
 * when a snapshot begins, when it is recorded and when files were lost. A call keeps the times of its start and its end.
 */
const CLOCK = "snapshot";
const NOW = `coalesce((SELECT value FROM sequence WHERE name = '${CLOCK}'), 0)`;

type CallKey = Pick<CallRow, "token" | "callId">;

export interface CallEnd extends CallKey {
  readonly result: string;
  /** What the result is charged with. */
  readonly resultBytes: number;
  /** Given for a large result, whose content the file holds. */
  readonly resultFile?: string;
  /** The head that it ran on. */
  readonly headGeneration: number;
}

/** Records a call as started, unless one of this id is known, which is returned then. */
export function beginCall(db: DatabaseSync, row: Omit<CallRow, "status" | "result" | "resultFile">): KnownCall | null {
  const { changes } = prepared(
    db,
    `INSERT INTO calls (token, call_id, payload_hash, generation, status, result, at_ms, head_generation, start_tick, end_tick)
     VALUES (?, ?, ?, ?, 'started', NULL, ?, ?, ${NOW}, NULL) ON CONFLICT (token, call_id) DO NOTHING`,
  ).run(row.token, row.callId, row.payloadHash, row.generation, row.atMs, row.headGeneration);
  return Number(changes) === 1 ? null : findCall(db, { token: row.token, callId: row.callId });
}

/** A call that began before files of its head were lost is doubtful, whenever it ends. */
export function finishCall(db: DatabaseSync, end: CallEnd): void {
  const { token, callId, result, resultBytes, resultFile, headGeneration } = end;
  const lost = prepared(db, "SELECT lost_tick FROM heads WHERE token = ? AND generation = ?").get(
    token,
    headGeneration,
  );
  const { changes } = prepared(
    db,
    `UPDATE calls SET result = ?, result_bytes = ?, head_generation = ?, end_tick = ${NOW},
       status = CASE WHEN start_tick < ? THEN 'doubtful' ELSE 'finished' END WHERE token = ? AND call_id = ?`,
  ).run(result, resultBytes, headGeneration, Number(lost?.["lost_tick"] ?? 0), token, callId);
  if (resultFile === undefined) return;
  // The session may have been destroyed meanwhile: then nothing owns the file.
  const own =
    Number(changes) === 1
      ? db.prepare("UPDATE calls SET result_file = ? WHERE token = ? AND call_id = ?")
      : db.prepare("INSERT OR IGNORE INTO dead_files (name) VALUES (?)");
  own.run(...(Number(changes) === 1 ? [resultFile, token, callId] : [resultFile]));
}

export function forgetCall(db: DatabaseSync, { token, callId }: CallKey): void {
  db.prepare("DELETE FROM calls WHERE token = ? AND call_id = ?").run(token, callId);
}

export function findCall(db: DatabaseSync, { token, callId }: CallKey): KnownCall | null {
  const row = db.prepare("SELECT * FROM calls WHERE token = ? AND call_id = ?").get(token, callId);
  if (row === undefined) return null;
  const headGeneration = Number(row["head_generation"]);
  const ticks = { start: Number(row["start_tick"]), end: row["end_tick"] === null ? null : Number(row["end_tick"]) };
  return {
    token,
    callId,
    payloadHash: String(row["payload_hash"]),
    generation: Number(row["generation"]),
    headGeneration,
    status: String(row["status"]) as CallRow["status"],
    result: row["result"] === null ? null : String(row["result"]),
    resultFile: row["result_file"] === null ? null : String(row["result_file"]),
    atMs: Number(row["at_ms"]),
    position: positionOf(db, { token, callId, headGeneration, ...ticks }),
  };
}

interface Placed extends CallKey {
  readonly headGeneration: number;
  readonly start: number;
  readonly end: number | null;
}

/** Walks from the live head back over what each head was made from, until the head that the call ran on. */
function positionOf(db: DatabaseSync, call: Placed): CallPosition {
  if (call.headGeneration < 1) return "unsure";
  const origin = db.prepare("SELECT * FROM heads WHERE token = ? AND generation = ?");
  let at = liveHead(db, call.token);
  let cut: Readonly<Record<string, unknown>> | undefined;
  while (at !== call.headGeneration) {
    cut = origin.get(call.token, at);
    const from = Number(cut?.["origin_generation"] ?? 0);
    // A head is made from an older one; what is not so is not believed.
    if (from === 0 || from >= at) return "discarded";
    at = from;
  }
  return cut === undefined ? "live" : beside(call, cut);
}

/** Whether a call came before or after the snapshot at which its head was left. */
function beside({ callId, start, end }: Placed, cut: Readonly<Record<string, unknown>>): CallPosition {
  const begun = cut["origin_begun_tick"];
  // No call was under way at an undo snapshot, and none came after it; a tool snapshot is taken for its own call.
  if (begun === null || cut["origin_call_id"] === callId) return "live";
  if (end !== null && end < Number(begun)) return "live";
  return start >= Number(cut["origin_sealed_tick"]) ? "discarded" : "unsure";
}

function tick(db: DatabaseSync): number {
  const row = db
    .prepare(
      "INSERT INTO sequence (name, value) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value",
    )
    .get(CLOCK);
  return Number(row?.["value"]);
}

/** The head that the records know as the live one. */
export function liveHead(db: DatabaseSync, token: string): number {
  const row = db
    .prepare("SELECT json_extract(row, '$.headGeneration') AS live FROM sessions WHERE token = ?")
    .get(token);
  return Number(row?.["live"] ?? 0);
}

/** Notes at what time of the clock a snapshot of a head was taken. */
export function stampSnapshot(db: DatabaseSync, row: SnapshotRow, headGeneration: number): void {
  db.prepare("UPDATE snapshots SET head_generation = ?, sealed_tick = ? WHERE id = ?").run(
    headGeneration,
    tick(db),
    row.id,
  );
  db.prepare(
    `INSERT INTO heads (token, generation, safe_tick) VALUES (?, ?, ?)
     ON CONFLICT (token, generation) DO UPDATE SET safe_tick = max(coalesce(safe_tick, 0), excluded.safe_tick)`,
  ).run(row.token, headGeneration, begunTick(row.name));
}

/** Notes what the session's new head was made from; the snapshot itself may go later. */
export function noteHeadOrigin(db: DatabaseSync, { token, headGeneration, parentSnapshot }: StoredSession): void {
  const stored = db
    .prepare("SELECT row, head_generation, sealed_tick FROM snapshots WHERE id = ? AND token = ?")
    .get(parentSnapshot, token);
  if (stored === undefined) return;
  const snapshot = JSON.parse(String(stored["row"])) as SnapshotRow;
  db.prepare(
    `INSERT OR REPLACE INTO heads (token, generation, origin_generation, origin_begun_tick, origin_sealed_tick, origin_call_id)
     VALUES (?, ?, ?, ?, ?, ?)`,
  ).run(
    token,
    headGeneration,
    stored["head_generation"] ?? null,
    snapshot.kind === "undo" ? null : begunTick(snapshot.name),
    stored["sealed_tick"] ?? null,
    snapshot.toolCallId,
  );
}

/** What finished on the live head since its last snapshot may be lost, and what is under way too. */
export function doubtCalls(db: DatabaseSync, token: string): void {
  const generation = liveHead(db, token);
  db.prepare(
    `UPDATE calls SET status = 'doubtful' WHERE token = ? AND head_generation = ? AND status = 'finished'
       AND end_tick >= coalesce((SELECT safe_tick FROM heads WHERE token = ? AND generation = ?), 0)`,
  ).run(token, generation, token, generation);
  db.prepare(
    `INSERT INTO heads (token, generation, lost_tick) VALUES (?, ?, ?)
     ON CONFLICT (token, generation) DO UPDATE SET lost_tick = excluded.lost_tick`,
  ).run(token, generation, tick(db));
  db.prepare("DELETE FROM lost_heads WHERE token = ?").run(token);
}

/** Drops calls that have ended: old ones, and of each session all but the newest. */
export function forgetCalls(
  db: DatabaseSync,
  { beforeMs, keepPerSession }: { readonly beforeMs: number; readonly keepPerSession: number },
): void {
  db.prepare("DELETE FROM calls WHERE at_ms < ? AND status <> 'started'").run(beforeMs);
  const crowded = db
    .prepare("SELECT token FROM calls WHERE status <> 'started' GROUP BY token HAVING count(*) > ?")
    .all(keepPerSession);
  const trim = db.prepare(
    `DELETE FROM calls WHERE rowid IN (SELECT rowid FROM calls WHERE token = ? AND status <> 'started'
       ORDER BY at_ms DESC, rowid DESC LIMIT -1 OFFSET ?)`,
  );
  for (const { token } of crowded) trim.run(String(token), keepPerSession);
}

/** The number in a name that `nextSnapshotName` gave: the time of the clock at which the snapshot began. */
function begunTick(name: string): number {
  return Number(/^s(\d+)$/.exec(name)?.[1] ?? 0);
}
