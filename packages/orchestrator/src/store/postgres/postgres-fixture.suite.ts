import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { systemClock } from "@turnbox/core";
import { Client } from "pg";
import type { Row } from "../rows.ts";
import type { StoreCall } from "../store.ts";
import { type PostgresServer, startPostgresServer } from "./postgres-server.suite.ts";
import type { Query } from "./transactions.ts";

export const CALL: StoreCall = { signal: new AbortController().signal };

/** Asks until the answer is not undefined, or fails with `what`. */
export async function poll<T>(
  what: string,
  ask: () => Promise<T | undefined> | T | undefined,
  { timeoutMs = 15_000, everyMs = 5 } = {},
): Promise<T> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > endMs) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await systemClock.sleep(everyMs);
  }
}

let schemas = 0;
/** A name that no other test of this file uses. */
export const newSchema = (): string => `test_${String(++schemas)}`;

/** A server for the tests of one file, and a way to look behind the store. */
export interface PostgresFixture extends AsyncDisposable {
  readonly server: PostgresServer;
  readonly sql: Query;
  /** The same, with the tables of a schema. */
  inSchema(schema: string): Query;
}

export async function openFixture(): Promise<PostgresFixture> {
  const server = await startPostgresServer();
  const inSchema =
    (schema: string): Query =>
    async (text, values = []) => {
      const client = new Client({ connectionString: server.url, options: `-c search_path=${schema}` });
      await client.connect();
      try {
        return (await client.query<Row>(text, [...values])).rows;
      } finally {
        await client.end();
      }
    };
  return { server, sql: inSchema("public"), inSchema, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

/**
 * What happens to the next commit.
 *
 * - `lost`: the line is cut before the server sees it.
 * - `unheard`: the server commits, and the line is cut before its answer comes through.
 * - `late`: the client's line is cut, and the server sees the commit when `release` is called.
 */
export type Cut = "lost" | "unheard" | "late";

/** A way to the server that can be cut in the middle of a commit. */
export interface CuttingProxy extends AsyncDisposable {
  readonly url: string;
  /** How many commits were cut. */
  readonly cuts: number;
  cutNextCommit(how: Cut): void;
  /** Hands a late commit on. */
  release(): void;
}

const COMMIT = "COMMIT\0";

export async function openCuttingProxy(server: PostgresServer): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  let armed: Cut | undefined;
  let cuts = 0;
  let handOn = (): void => undefined;

  const listener = createServer((client) => {
    const upstream = connect(server.port, "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => sockets.delete(socket));
    }
    let answerIsLost = false;
    const cutBoth = (): void => {
      client.destroy();
      upstream.destroy();
    };
    client.on("data", (chunk) => {
      if (armed === undefined || !chunk.includes(COMMIT)) {
        upstream.write(chunk);
        return;
      }
      cuts++;
      const how = armed;
      armed = undefined;
      if (how === "lost") {
        cutBoth();
        return;
      }
      answerIsLost = true;
      if (how === "unheard") {
        upstream.write(chunk);
        return;
      }
      client.removeAllListeners("end");
      client.destroy();
      handOn = () => {
        upstream.end(chunk);
      };
    });
    upstream.on("data", (chunk) => {
      if (!answerIsLost) client.write(chunk);
      else if (chunk.includes(COMMIT)) cutBoth();
    });
    client.on("end", () => upstream.end());
    upstream.on("end", () => client.end());
  });
  await new Promise<void>((done) => listener.listen(0, "127.0.0.1", done));
  const url = new URL(server.url);
  url.port = String((listener.address() as AddressInfo).port);
  return {
    url: url.href,
    get cuts() {
      return cuts;
    },
    cutNextCommit: (how) => {
      armed = how;
    },
    release: () => {
      handOn();
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => listener.close(done));
    },
  };
}
