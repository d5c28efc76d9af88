import type { DatabaseSync } from "node:sqlite";
import {
  beginCall,
  doubtCalls,
  findCall,
  finishCall,
  forgetCall,
  forgetCalls,
  liveHead,
  noteHeadOrigin,
  stampSnapshot,
} from "./call-records.ts";
import {
  dropEnvironment,
  environmentOf,
  keepEnvironment,
  listSessions,
  rowText,
  type StoredSession,
} from "./environment-records.ts";
import { keepAdmission, raiseEpoch } from "./fleet-records.ts";
import { forgetProcess, listProcesses, putProcess } from "./process-records.ts";
import { forgetReceipts, keepReceipts } from "./receipt-records.ts";
import { dropResults, resultBytes } from "./result-records.ts";
import type { HeadRef } from "../storage/storage.ts";
import type { HuskRow, IntentRow, ProcessRow, ReceiptRow, SessionRow, SnapshotRow } from "./row.ts";

/**
 * How safe an operation must be before it is answered: `full` survives a power cut, `normal` a `kill -9` of the service,
 * `none` changes nothing.
 */
export type Durability = "full" | "normal" | "none";

interface Operation<Input, Output> {
  readonly durability: Durability;
  readonly run: (db: DatabaseSync, input: Input) => Output;
}

const operation = <Input, Output>(
  durability: Durability,
  run: (db: DatabaseSync, input: Input) => Output,
): Operation<Input, Output> => ({ durability, run });

const parseRows = (rows: readonly Record<string, unknown>[]): readonly unknown[] =>
  rows.map((row) => JSON.parse(String(row["row"])) as unknown);

const insertSession = (db: DatabaseSync, row: SessionRow): void => {
  db.prepare("INSERT INTO sessions (id, token, row, env_hash) VALUES (?, ?, ?, ?)").run(
    row.id,
    row.token,
    rowText(row),
    keepEnvironment(db, row.env),
  );
};

/**
 * A session that is not there (any more) is an error: a late change must not bring it back, nor be lost silently. Its
 * environment stays as it was inserted.
 */
const updateSession = (db: DatabaseSync, row: StoredSession): void => {
  const { changes } = db
    .prepare("UPDATE sessions SET row = ? WHERE token = ? AND id = ?")
    .run(rowText(row), row.token, row.id);
  if (Number(changes) !== 1) throw new Error(`there is no session ${row.id} to change`);
};

const putSnapshot = (db: DatabaseSync, row: SnapshotRow, headGeneration: number): void => {
  db.prepare("INSERT INTO snapshots (id, token, name, row) VALUES (?, ?, ?, ?)").run(
    row.id,
    row.token,
    row.name,
    JSON.stringify(row),
  );
  stampSnapshot(db, row, headGeneration);
};

/** What continued from it continues from its parent. */
const dropSnapshot = (db: DatabaseSync, token: string, id: string): void => {
  const rows = parseRows(db.prepare("SELECT row FROM snapshots WHERE token = ?").all(token)) as readonly SnapshotRow[];
  const parent = rows.find((row) => row.id === id)?.parent ?? null;
  db.prepare("DELETE FROM snapshots WHERE id = ?").run(id);
  const update = db.prepare("UPDATE snapshots SET row = ? WHERE id = ?");
  for (const row of rows) if (row.parent === id) update.run(JSON.stringify({ ...row, parent }), row.id);
};

const putReceipt = (db: DatabaseSync, row: ReceiptRow): void => {
  db.prepare("INSERT INTO receipts (scope, key, payload_hash, result, at_ms) VALUES (?, ?, ?, ?, ?)").run(
    row.scope,
    row.key,
    row.payloadHash,
    row.result,
    row.atMs,
  );
};

const finishReceipt = (db: DatabaseSync, { scope, key, result, atMs }: ReceiptRow): void => {
  db.prepare("UPDATE receipts SET result = ?, at_ms = ? WHERE scope = ? AND key = ?").run(result, atMs, scope, key);
};

const dropReceipt = (db: DatabaseSync, { scope, key }: Pick<ReceiptRow, "scope" | "key">): void => {
  db.prepare("DELETE FROM receipts WHERE scope = ? AND key = ?").run(scope, key);
};

const deleteSession = (db: DatabaseSync, token: string): void => {
  const env = environmentOf(db, token);
  for (const table of ["sessions", "snapshots", "intents", "calls", "idle", "heads", "lost_heads", "processes"]) {
    db.prepare(`DELETE FROM ${table} WHERE token = ?`).run(token);
  }
  dropEnvironment(db, env);
  forgetReceipts(db, token);
};

const endIntent = (db: DatabaseSync, token: string): void => {
  db.prepare("DELETE FROM intents WHERE token = ?").run(token);
};

/** A change of one session, committed as one: its row, what came with it, and whether its intent ends with it. */
export interface SessionCommit {
  readonly session: StoredSession;
  readonly snapshot?: SnapshotRow;
  /** The id of a snapshot that is gone. */
  readonly dropped?: string;
  readonly receipt?: ReceiptRow;
  readonly intent?: "keep" | "end";
  /** What tool calls did since the last snapshot may be lost. */
  readonly calls?: "doubt";
}

/** Everything the database does, each as one transaction. */
export const operations = {
  /** A session that is about to be made. Its id must be free. */
  insertSession: operation("full", insertSession),
  /** A session whose record was lost, with its snapshots. */
  restoreSession: operation(
    "full",
    (db, input: { readonly session: SessionRow; readonly snapshots: readonly SnapshotRow[] }): void => {
      insertSession(db, input.session);
      for (const snapshot of input.snapshots) putSnapshot(db, snapshot, input.session.headGeneration);
    },
  ),
  /** The session as it is now, with what the same step made. */
  commitSession: operation("full", (db, input: SessionCommit): void => {
    const { session } = input;
    const oldHead = liveHead(db, session.token);
    updateSession(db, session);
    if (input.snapshot !== undefined) putSnapshot(db, input.snapshot, oldHead);
    if (session.headGeneration !== oldHead) noteHeadOrigin(db, session);
    if (input.calls === "doubt") doubtCalls(db, session.token);
    if (input.dropped !== undefined) dropSnapshot(db, input.session.token, input.dropped);
    if (input.receipt !== undefined) putReceipt(db, input.receipt);
    if (input.intent === "end") endIntent(db, input.session.token);
  }),
  /** Sessions that were made together and become usable together, or not at all. */
  commitSessions: operation(
    "full",
    (db, input: { readonly sessions: readonly StoredSession[]; readonly receipt?: ReceiptRow }): void => {
      for (const session of input.sessions) updateSession(db, session);
      if (input.receipt !== undefined) putReceipt(db, input.receipt);
    },
  ),
  /** A session becomes warm, or is about to be handed over or removed. A power cut leaves none warm in any case. */
  noteReadiness: operation("normal", updateSession),
  /** A session that was made under another name becomes what its row says, and usable. */
  handOverSession: operation(
    "full",
    (db, input: { readonly from: string; readonly session: SessionRow; readonly receipt?: ReceiptRow }): void => {
      const { session, receipt } = input;
      const before = environmentOf(db, session.token);
      const { changes } = db
        .prepare("UPDATE sessions SET id = ?, row = ?, env_hash = ? WHERE token = ? AND id = ?")
        .run(session.id, rowText(session), keepEnvironment(db, session.env), session.token, input.from);
      if (Number(changes) !== 1) throw new Error(`there is no session ${input.from} to hand over`);
      dropEnvironment(db, before);
      if (receipt !== undefined) putReceipt(db, receipt);
    },
  ),
  /** Forgets the session and all that belongs to it. */
  deleteSession: operation("full", deleteSession),
  /** Forgets the session but for its files, which others depend on. */
  becomeHusk: operation("full", (db, row: HuskRow): void => {
    deleteSession(db, row.token);
    db.prepare("INSERT INTO husks (token, row) VALUES (?, ?)").run(row.token, JSON.stringify(row));
  }),
  listHusks: operation(
    "none",
    (db, _: null): readonly HuskRow[] => parseRows(db.prepare("SELECT row FROM husks").all()) as readonly HuskRow[],
  ),
  deleteHusk: operation("full", (db, token: string): void => {
    db.prepare("DELETE FROM husks WHERE token = ?").run(token);
  }),
  /** How long sessions have been idle, by token; what is not named stays. */
  saveIdle: operation("normal", (db, idleMs: Readonly<Record<string, number>>): void => {
    const save = db.prepare(
      "INSERT INTO idle (token, idle_ms) VALUES (?, ?) ON CONFLICT (token) DO UPDATE SET idle_ms = excluded.idle_ms",
    );
    for (const [token, ms] of Object.entries(idleMs)) save.run(token, Math.round(ms));
  }),
  listIdle: operation("none", (db, _: null): Readonly<Record<string, number>> => {
    const rows = db.prepare("SELECT token, idle_ms FROM idle").all();
    return Object.fromEntries(rows.map((row) => [String(row["token"]), Number(row["idle_ms"])]));
  }),
  listSessions: operation("none", (db, _: null): readonly SessionRow[] => listSessions(db)),
  listSnapshots: operation(
    "none",
    (db, token: string): readonly SnapshotRow[] =>
      parseRows(
        db.prepare("SELECT row FROM snapshots WHERE token = ? ORDER BY rowid").all(token),
      ) as readonly SnapshotRow[],
  ),
  findSnapshot: operation("none", (db, id: string): SnapshotRow | null => {
    const row = db.prepare("SELECT row FROM snapshots WHERE id = ?").get(id);
    return row === undefined ? null : (JSON.parse(String(row["row"])) as SnapshotRow);
  }),
  countSnapshotsOf: operation("none", (db, token: string): number =>
    Number(db.prepare("SELECT count(*) AS count FROM snapshots WHERE token = ?").get(token)?.["count"] ?? 0),
  ),
  /** How many snapshots each session has, by its token. */
  countSnapshots: operation("none", (db, _: null): Readonly<Record<string, number>> => {
    const rows = db.prepare("SELECT token, count(*) AS count FROM snapshots GROUP BY token").all();
    return Object.fromEntries(rows.map((row) => [String(row["token"]), Number(row["count"])]));
  }),
  beginIntent: operation("full", (db, row: IntentRow): void => {
    db.prepare("INSERT INTO intents (token, row) VALUES (?, ?)").run(row.token, JSON.stringify(row));
  }),
  endIntent: operation("full", endIntent),
  listIntents: operation(
    "none",
    (db, _: null): readonly IntentRow[] =>
      parseRows(db.prepare("SELECT row FROM intents").all()) as readonly IntentRow[],
  ),
  findReceipt: operation("none", (db, input: { readonly scope: string; readonly key: string }): ReceiptRow | null => {
    const row = db
      .prepare("SELECT payload_hash, result, at_ms FROM receipts WHERE scope = ? AND key = ?")
      .get(input.scope, input.key);
    if (row === undefined) return null;
    return {
      ...input,
      payloadHash: String(row["payload_hash"]),
      result: String(row["result"]),
      atMs: Number(row["at_ms"]),
    };
  }),
  /** The result of a request whose effect is not in the records. */
  keepReceipt: operation("full", putReceipt),
  /** The result of a request that was recorded as begun. */
  finishReceipt: operation("full", finishReceipt),
  /** A request that was put down as begun had no effect: its key may come again. */
  dropReceipt: operation("normal", dropReceipt),
  /** The start of a call, recorded before its effect; returns the call of this id if there is one already. */
  beginCall: operation("normal", beginCall),
  finishCall: operation("normal", finishCall),
  /** A call that was refused before it had any effect leaves no trace: the same id may come again. */
  forgetCall: operation("normal", forgetCall),
  findCall: operation("none", findCall),
  forgetCalls: operation("normal", forgetCalls),
  resultBytes: operation("none", resultBytes),
  dropResults: operation("normal", dropResults),
  /** Heads that the storage had to mount again; they are remembered until their sessions have a new generation. */
  noteLostHeads: operation("full", (db, heads: readonly HeadRef[]): void => {
    const note = db.prepare("INSERT OR IGNORE INTO lost_heads (token, generation) VALUES (?, ?)");
    for (const { token, generation } of heads) note.run(token, generation);
  }),
  listLostHeads: operation("none", (db, _: null): readonly HeadRef[] => {
    const rows = db.prepare("SELECT token, generation FROM lost_heads").all();
    return rows.map((row) => ({ token: String(row["token"]), generation: Number(row["generation"]) }));
  }),
  forgetLostHeads: operation("full", (db, heads: readonly HeadRef[]): void => {
    const forget = db.prepare("DELETE FROM lost_heads WHERE token = ? AND generation = ?");
    for (const { token, generation } of heads) forget.run(token, generation);
  }),
  findFact: operation("none", (db, name: string): string | null => {
    const row = db.prepare("SELECT value FROM facts WHERE name = ?").get(name);
    return row === undefined ? null : String(row["value"]);
  }),
  keepFact: operation("full", (db, input: { readonly name: string; readonly value: string }): void => {
    db.prepare(
      "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    ).run(input.name, input.value);
  }),
  /** Takes an epoch of the fleet's leader for known. Returns the highest there is. */
  raiseEpoch: operation("full", raiseEpoch),
  /** Keeps what the leader of an epoch says about new sessions, unless a later leader is known. Returns the highest. */
  keepAdmission: operation("full", keepAdmission),
  /** A process that is about to be started. Its receipt is durable before it is. */
  startProcess: operation(
    "full",
    (db, input: { readonly process: ProcessRow; readonly receipt?: ReceiptRow | undefined }): void => {
      putProcess(db, input.process);
      if (input.receipt !== undefined) putReceipt(db, input.receipt);
    },
  ),
  putProcess: operation("normal", putProcess),
  forgetProcess: operation("normal", forgetProcess),
  listProcesses: operation("none", listProcesses),
  /** The next number of a sequence that never gives one twice, also over crashes. */
  nextNumber: operation("full", (db, name: string): number => {
    const row = db
      .prepare(
        "INSERT INTO sequence (name, value) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value",
      )
      .get(name);
    return Number(row?.["value"]);
  }),
  /** Makes sure that the sequence goes on beyond a number. */
  raiseNumber: operation("full", (db, input: { readonly name: string; readonly atLeast: number }): void => {
    db.prepare(
      "INSERT INTO sequence (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)",
    ).run(input.name, input.atLeast);
  }),
  /** Drops receipts older than their retention, and the oldest of those that are beyond their bounds. */
  keepReceipts: operation("normal", keepReceipts),
} as const;

export type Operations = typeof operations;
export type OperationName = keyof Operations;
export type InputOf<Name extends OperationName> = Parameters<Operations[Name]["run"]>[1];
export type OutputOf<Name extends OperationName> = ReturnType<Operations[Name]["run"]>;
