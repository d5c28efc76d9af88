import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { DeadFiles } from "./dead-files.ts";
import { type Answer, CLOSE, type Request, TEND } from "./message.ts";
import { operations } from "./operation.ts";
import { resultDirectory } from "./result-directory.ts";
import { prepareSchema, SCHEMA_VERSION } from "./schema.ts";

/**
 * The thread that owns the database. It takes all requests that have arrived as one batch and commits them together:
 * many callers share one disk flush. A request that fails undoes itself and not its neighbours.
 */
const port = parentPort;
if (port === null) throw new Error("this file is the database's worker thread and runs only as one");

const { path } = workerData as { readonly path: string };
const db = new DatabaseSync(path);
prepareSchema(db);
db.exec("PRAGMA wal_autocheckpoint = 0");
beginLog();
const deadFiles = new DeadFiles(db, resultDirectory(path));
deadFiles.sweep();
// The input of each operation is checked by the types at the other end of the port.
const table: Readonly<
  Record<string, { readonly durability: string; readonly run: (db: DatabaseSync, input: never) => unknown }>
> = operations;

const control = {
  begin: db.prepare("BEGIN IMMEDIATE"),
  commit: db.prepare("COMMIT"),
  mark: db.prepare("SAVEPOINT one"),
  keep: db.prepare("RELEASE one"),
};
const freePages = db.prepare("PRAGMA freelist_count");
/** As much as SQLite would let it grow by itself. */
const MAX_LOG_BYTES = 4 * 1024 * 1024;
/** Pages that are free and may stay so: what comes next uses them. */
const MAX_FREE_PAGES = 512;
let synchronous: "FULL" | "NORMAL" | undefined;

port.on("message", (first: Request) => {
  const arrived = [first];
  for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port))
    arrived.push(next.message as Request);
  const end = arrived.findIndex(({ name }) => name === CLOSE);
  commit((end < 0 ? arrived : arrived.slice(0, end)).filter(({ name }) => name !== TEND));
  tendFiles();
  if (end < 0) {
    tendLog();
    return;
  }
  db.close();
  port.close();
});

function commit(batch: readonly Request[]): void {
  if (batch.length === 0) return;
  synchronize(batch.some(({ name }) => table[name]?.durability === "full") ? "FULL" : "NORMAL");
  control.begin.run();
  const answers = batch.map(batch.length === 1 ? runAlone : runAmongOthers);
  try {
    if (db.isTransaction) control.commit.run();
    for (const answer of answers) port?.postMessage(answer);
  } catch (thrown) {
    if (db.isTransaction) db.exec("ROLLBACK");
    for (const { id } of batch) port?.postMessage({ id, error: messageOf(thrown) } satisfies Answer);
  }
}

/** Files that cannot be removed now are tried again after the next change; nothing depends on it. */
function tendFiles(): void {
  try {
    deadFiles.bury();
  } catch {
    if (db.isTransaction) db.exec("ROLLBACK");
  }
}

/**
 * Gives space that has become free back to the disk, takes a log that has grown long into the database, and begins it
 * anew. Before others write: see `Near`.
 */
function tendLog(): void {
  const isLoose = Number(freePages.get()?.["freelist_count"] ?? 0) > MAX_FREE_PAGES;
  if (!isLoose && statSync(`${path}-wal`).size < MAX_LOG_BYTES) return;
  if (isLoose) db.exec("PRAGMA incremental_vacuum");
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  beginLog();
}

/** Writes the head of the log, and flushes it, with a change that changes nothing. */
function beginLog(): void {
  db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
}

function synchronize(level: "FULL" | "NORMAL"): void {
  if (synchronous !== level) db.exec(`PRAGMA synchronous = ${level}`);
  synchronous = level;
}

/** What fails takes the transaction with it, which is its own. */
function runAlone({ id, name, input }: Request): Answer {
  try {
    return { id, output: table[name]?.run(db, input as never) };
  } catch (thrown) {
    if (db.isTransaction) db.exec("ROLLBACK");
    return { id, error: messageOf(thrown) };
  }
}

function runAmongOthers({ id, name, input }: Request): Answer {
  control.mark.run();
  try {
    const output = table[name]?.run(db, input as never);
    control.keep.run();
    return { id, output };
  } catch (thrown) {
    db.exec("ROLLBACK TO one; RELEASE one");
    return { id, error: messageOf(thrown) };
  }
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

port.postMessage({ id: 0, output: "ready" } satisfies Answer);
