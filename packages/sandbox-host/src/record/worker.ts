import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { type Answer, CLOSE, type Request } from "./message.ts";
import { operations } from "./operation.ts";
import { prepareSchema } from "./schema.ts";

/**
 * The thread that owns the database. It takes all requests that have arrived as one batch and commits them together:
 * many callers share one disk flush. A request that fails undoes itself and not its neighbours.
 */
const port = parentPort;
if (port === null) throw new Error("this file is the database's worker thread and runs only as one");

const { path } = workerData as { readonly path: string };
const db = new DatabaseSync(path);
prepareSchema(db);
// The input of each operation is checked by the types at the other end of the port.
const table: Readonly<
  Record<string, { readonly durability: string; readonly run: (db: DatabaseSync, input: never) => unknown }>
> = operations;

let waiting: Request[] = [];

port.on("message", (request: Request) => {
  if (request.name === CLOSE) {
    commitWaiting();
    db.close();
    port.close();
    return;
  }
  if (waiting.length === 0) setImmediate(commitWaiting);
  waiting.push(request);
});

function commitWaiting(): void {
  const batch = waiting;
  waiting = [];
  if (batch.length === 0) return;
  const durable = batch.some(({ name }) => table[name]?.durability === "full");
  db.exec(durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
  db.exec("BEGIN IMMEDIATE");
  const answers = batch.map(runOne);
  try {
    db.exec("COMMIT");
    for (const answer of answers) port?.postMessage(answer);
  } catch (thrown) {
    if (db.isTransaction) db.exec("ROLLBACK");
    for (const { id } of batch) port?.postMessage({ id, error: messageOf(thrown) } satisfies Answer);
  }
}

function runOne({ id, name, input }: Request): Answer {
  db.exec("SAVEPOINT one");
  try {
    const output = table[name]?.run(db, input as never);
    db.exec("RELEASE one");
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
