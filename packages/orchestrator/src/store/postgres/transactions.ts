import { randomUUID } from "node:crypto";
import type { Clock } from "@turnbox/core";
import type { PoolClient, QueryResult } from "pg";
import type { Row } from "../rows.ts";
import type { StoreCall } from "../store.ts";
import type { Connections } from "./connections.ts";
import { failureKind, storeFailure } from "./failure.ts";

/** Runs one statement and returns its rows. */
export type Query = (text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;

export type Work<T> = (query: Query) => Promise<T>;

/** Runs work as transactions, again if it is safe and of use. Work that throws changes nothing. */
export interface Transactions {
  /** For work that changes nothing. */
  read<T>(work: Work<T>, call: StoreCall): Promise<T>;
  /**
   * For work that may change something: its changes take place exactly once or not at all, also if the connection is
   * cut or the server crashes while the commit is under way.
   */
  write<T>(work: Work<T>, call: StoreCall): Promise<T>;
  /** For work that finds by itself what was done before; it needs no tables. */
  writeRepeatable<T>(work: Work<T>, call: StoreCall): Promise<T>;
}

export interface TransactionsOptions {
  readonly connections: Connections;
  /** The server's name in messages. */
  readonly server: string;
  readonly clock: Clock;
  /** How long to go on trying. The call's own signal may end it sooner. */
  readonly patienceMs: number;
}

const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 500;

export function createTransactions({ connections, server, clock, patienceMs }: TransactionsOptions): Transactions {
  const repeat = async <T>(attempt: Attempt<T>, { signal }: StoreCall): Promise<T> => {
    const endMs = clock.monotonicMs() + patienceMs;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      try {
        return await attempt.run({ signal });
      } catch (thrown) {
        signal.throwIfAborted();
        const isLate = clock.monotonicMs() + pauseMs >= endMs;
        if (isLate || !isWorthAnother(thrown)) {
          throw storeFailure(server, thrown, { admitted: attempt.isUnsettled() ? "unknown" : "no" });
        }
      }
      await clock.sleep(pauseMs, { signal });
    }
  };

  return {
    read: (work, call) =>
      repeat({ run: (c) => connections.lend((client) => work(queryOf(client)), c), isUnsettled: () => false }, call),
    write: (work, call) => repeat(new MarkedWrite(connections, work), call),
    writeRepeatable: (work, call) =>
      repeat({ run: (c) => connections.lend((client) => transact(client, work), c), isUnsettled: () => false }, call),
  };
}

interface Attempt<T> {
  run(call: StoreCall): Promise<T>;
  /** Whether a commit was sent whose outcome is not known. */
  isUnsettled(): boolean;
}

const isWorthAnother = (thrown: unknown): boolean => ["conflict", "lost"].includes(failureKind(thrown));

/** Row locks and conditions on what is written make the work safe; each statement sees what was committed before it. */
const BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED";

async function transact<T>(client: PoolClient, work: Work<T>): Promise<T> {
  await client.query(BEGIN);
  const answer = await orUndo(client, () => work(queryOf(client)));
  await client.query("COMMIT");
  return answer;
}

/** Leaves the connection without a transaction if a step fails, so that it serves the next. */
async function orUndo<T>(client: PoolClient, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (thrown) {
    if (failureKind(thrown) !== "lost") await client.query("ROLLBACK");
    throw thrown;
  }
}

/**
 * Work whose transaction leaves a mark. All attempts share it, so a second one waits for a first that the server has not
 * given up yet, and finds the mark if that was committed after all. (Transaction ids do not tell: after a crash the
 * server gives those out again that it had not written down.)
 */
class MarkedWrite<T> implements Attempt<T> {
  readonly #connections: Connections;
  readonly #work: Work<T>;
  readonly #mark = randomUUID();
  /** The answer of an attempt whose commit was sent. */
  #unsettled: { readonly answer: T } | undefined;

  constructor(connections: Connections, work: Work<T>) {
    this.#connections = connections;
    this.#work = work;
  }

  isUnsettled(): boolean {
    return this.#unsettled !== undefined;
  }

  run(call: StoreCall): Promise<T> {
    return this.#connections.lend((client) => this.#transact(client), call);
  }

  async #transact(client: PoolClient): Promise<T> {
    const isMarked = await orUndo(client, () => beginMarked(client, this.#mark));
    if (!isMarked && this.#unsettled !== undefined) {
      await client.query("ROLLBACK");
      return this.#unsettled.answer;
    }
    this.#unsettled = undefined;
    const answer = await orUndo(client, () => this.#work(queryOf(client)));
    this.#unsettled = { answer };
    try {
      await client.query("COMMIT");
    } catch (thrown) {
      if (failureKind(thrown) !== "lost") this.#unsettled = undefined;
      throw thrown;
    }
    return answer;
  }
}

/** Begins and leaves the mark; whether it was not there yet. */
async function beginMarked(client: PoolClient, mark: string): Promise<boolean> {
  const results = (await client.query(
    `${BEGIN}; INSERT INTO marks (mark) VALUES ('${mark}') ON CONFLICT DO NOTHING RETURNING mark`,
  )) as unknown as readonly QueryResult[];
  return results[1]?.rowCount === 1;
}

const queryOf =
  (client: PoolClient): Query =>
  async (text, values) =>
    (await client.query<Row>(text, values === undefined ? [] : [...values])).rows;
