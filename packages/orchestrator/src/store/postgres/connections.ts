import { Pool, type PoolClient } from "pg";
import type { ConnectionSettings } from "./connection-settings.ts";
import { failureKind } from "./failure.ts";

/** How long things may take, each shorter than what a caller waits. */
export interface ConnectionLimits {
  readonly maxConnections: number;
  readonly connectTimeoutMs: number;
  /** For one statement, and for a transaction whose client says nothing more. */
  readonly statementTimeoutMs: number;
}

/** Connections to the server, made when needed and kept for the next. */
export interface Connections extends AsyncDisposable {
  /**
   * Lends a connection to `work`. It is thrown away if it broke or the signal ended the work: whatever it was doing is
   * undone by the server, unless it was a commit.
   */
  lend<T>(work: (client: PoolClient) => Promise<T>, call: { readonly signal: AbortSignal }): Promise<T>;
}

/** What the driver's timeout waits on top of the server's, for the server's own word to arrive. */
const ANSWER_MARGIN_MS = 1000;
const IDLE_TIMEOUT_MS = 30_000;

export function createConnections(settings: ConnectionSettings, schema: string, limits: ConnectionLimits): Connections {
  const pool = new Pool({
    host: settings.host,
    port: settings.port,
    user: settings.user,
    password: settings.password,
    database: settings.database,
    application_name: settings.applicationName,
    ssl: settings.ssl,
    // What was answered must be there after a crash, whatever is usual on this server: an epoch is never given twice.
    options: `-c search_path=${schema} -c synchronous_commit=on`,
    max: limits.maxConnections,
    connectionTimeoutMillis: limits.connectTimeoutMs,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    keepAlive: true,
    statement_timeout: limits.statementTimeoutMs,
    lock_timeout: limits.statementTimeoutMs,
    idle_in_transaction_session_timeout: limits.statementTimeoutMs,
    query_timeout: limits.statementTimeoutMs + ANSWER_MARGIN_MS,
  });
  // A connection that dies is noticed by its user; an unused one is replaced when next needed.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => {
    client.on("error", () => undefined);
  });

  return {
    lend: async (work, { signal }) => {
      signal.throwIfAborted();
      const ended = Promise.withResolvers<never>();
      const onAbort = (): void => {
        ended.reject(signal.reason as Error);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        return await Promise.race([ended.promise, lendOne({ pool, work, ended: ended.promise, signal })]);
      } finally {
        signal.removeEventListener("abort", onAbort);
      }
    },
    [Symbol.asyncDispose]: () => pool.end(),
  };
}

interface Loan<T> {
  readonly pool: Pool;
  readonly work: (client: PoolClient) => Promise<T>;
  /** Rejects when the signal does. */
  readonly ended: Promise<never>;
  readonly signal: AbortSignal;
}

async function lendOne<T>({ pool, work, ended, signal }: Loan<T>): Promise<T> {
  const client = await pool.connect();
  let isBroken = false;
  try {
    signal.throwIfAborted();
    return await Promise.race([ended, work(client)]);
  } catch (thrown) {
    isBroken = signal.aborted || failureKind(thrown) === "lost";
    throw thrown;
  } finally {
    client.release(isBroken);
  }
}
