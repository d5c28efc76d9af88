import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { type Answer, type Request, toFailure } from "./message.ts";

/** How safe a change is when its call returns: `full` survives a power cut, `normal` a crash of the process. */
export type Durability = "full" | "normal";

/** A database that is open, and what can be asked of it. */
export interface ServedDatabase {
  readonly db: DatabaseSync;
  /** Runs one operation, inside a transaction that is not its own to end. What it throws undoes its changes, and no others. */
  run(name: string, input: unknown): unknown;
  /** Default: `full` for all. The calls of a batch get the safest of theirs. */
  durability?(name: string): Durability;
  /** Called after each batch has been answered, outside of transactions. What it throws is dropped. */
  tend?(): void;
}

type Call = Extract<Request, { kind: "call" }>;

/**
 * The life of a worker thread that owns a database: opens it with the `workerData` of the thread, then serves a `DatabaseThread`. What has
 * arrived together is committed together, so many callers share one flush of the disk. The worker's file calls this and nothing else.
 */
export function serveDatabase(open: (data: never) => ServedDatabase): void {
  const port = parentPort;
  if (port === null) throw new Error("a database is served by a worker thread only");
  const send = (answer: Answer): void => {
    port.postMessage(answer);
  };
  let database: ServedDatabase;
  try {
    database = open(workerData as never);
  } catch (thrown) {
    send({ kind: "refused", failure: toFailure(thrown) });
    port.close();
    return;
  }
  const batches = new Batches(database, send);
  port.on("message", (first: Request) => {
    const arrived = [first, ...receiveAll(port)];
    const end = arrived.findIndex(({ kind }) => kind === "close");
    const calls = end < 0 ? arrived : arrived.slice(0, end);
    batches.run(calls.filter((request) => request.kind === "call"));
    if (end < 0) return;
    database.db.close();
    port.close();
  });
  send({ kind: "opened" });
}

function receiveAll(port: MessagePort): readonly Request[] {
  const all: Request[] = [];
  for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port))
    all.push(next.message as Request);
  return all;
}

/** Runs calls that arrived together as one transaction. */
class Batches {
  readonly #database: ServedDatabase;
  readonly #send: (answer: Answer) => void;
  readonly #begin: StatementSync;
  readonly #end: StatementSync;
  #synchronous: Durability | undefined;

  constructor(database: ServedDatabase, send: (answer: Answer) => void) {
    this.#database = database;
    this.#send = send;
    this.#begin = database.db.prepare("BEGIN IMMEDIATE");
    this.#end = database.db.prepare("COMMIT");
  }

  run(batch: readonly Call[]): void {
    if (batch.length > 0) for (const answer of this.#commit(batch)) this.#send(answer);
    this.#tend();
  }

  #commit(batch: readonly Call[]): readonly Answer[] {
    try {
      this.#synchronize(batch);
      this.#begin.run();
      // What a call that is alone throws undoes the transaction as a whole.
      const answers =
        batch.length === 1 ? batch.map((call) => this.#run(call)) : batch.map((call) => this.#answer(call));
      this.#end.run();
      return answers;
    } catch (thrown) {
      this.#undo();
      return batch.map(({ id }) => ({ kind: "failed", id, failure: toFailure(thrown) }));
    }
  }

  #run({ id, name, input }: Call): Answer {
    return { kind: "result", id, output: this.#database.run(name, input) };
  }

  #answer(call: Call): Answer {
    const { db } = this.#database;
    db.exec("SAVEPOINT one");
    try {
      const answer = this.#run(call);
      db.exec("RELEASE one");
      return answer;
    } catch (thrown) {
      // SQLite itself ends the transaction after some failures, a full disk among them: none of its calls has happened then.
      if (!db.isTransaction) throw thrown;
      db.exec("ROLLBACK TO one; RELEASE one");
      return { kind: "failed", id: call.id, failure: toFailure(thrown) };
    }
  }

  #synchronize(batch: readonly Call[]): void {
    const isFull = batch.some(({ name }) => (this.#database.durability?.(name) ?? "full") === "full");
    const level = isFull ? "full" : "normal";
    if (this.#synchronous !== level) this.#database.db.exec(`PRAGMA synchronous = ${level}`);
    this.#synchronous = level;
  }

  #tend(): void {
    try {
      this.#database.tend?.();
    } catch {
      this.#undo();
    }
  }

  #undo(): void {
    if (this.#database.db.isTransaction) this.#database.db.exec("ROLLBACK");
  }
}
