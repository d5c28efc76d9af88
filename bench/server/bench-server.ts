import { setTimeout as delay } from "node:timers/promises";
import { type Client, createClient } from "@connectrpc/connect";
import { connectHost, connectTurnbox, type HostClients, Turnbox, type TurnboxClients } from "@turnbox/client";
import { createHttp2Transport, ConnectionManager } from "@turnbox/rpc/client";
import { Health } from "@turnbox/protocol/health/v1/health_pb";
import { findPool } from "../../test/support/residue.ts";
import { makeHome, startServer, type TestServer } from "../../test/support/server.ts";
import { until } from "../run/sample.ts";

/** A burst with a full pool takes as many. */
export const WARM_SESSIONS = 20;
const REFILL_PER_SECOND = 20;
/** What goes on in the background after a destroy has its time. */
const SETTLE_MS = 200;
const CONNECTION_TIMES = { connectTimeoutMs: 10_000, pingIntervalMs: 10_000, pingTimeoutMs: 5000 };
const ANSWER_MAX_BYTES = 1024;

interface Parts {
  readonly control: TurnboxClients;
  readonly hostUrl: string;
  readonly pool: string;
  /** Server, home and connections, in the order in which they were made. */
  readonly owned: AsyncDisposableStack;
}

/** A built server of its own home, ZFS and gVisor, and the connections to it. */
export class BenchServer implements AsyncDisposable {
  readonly turnbox: Turnbox;
  readonly control: TurnboxClients;
  /** Straight to the host, with the right to do everything. */
  readonly host: HostClients;
  readonly hostUrl: string;
  readonly pool: string;
  readonly home: string;
  readonly #owned: AsyncDisposableStack;

  private constructor(server: TestServer, parts: Parts) {
    const { url, token } = server;
    this.#owned = parts.owned;
    this.home = server.home;
    this.control = parts.control;
    this.hostUrl = parts.hostUrl;
    this.pool = parts.pool;
    this.turnbox = this.#owned.use(Turnbox.connect({ url, token }));
    this.host = this.#owned.use(connectHost({ url: parts.hostUrl, token }));
  }

  static async start(kind: "cold" | "warm"): Promise<BenchServer> {
    const env = {
      TURNBOX_POOL_SIZE: "16GiB",
      TURNBOX_LOG_LEVEL: "warn",
      TURNBOX_WARM_SESSIONS: kind === "warm" ? String(WARM_SESSIONS) : "0",
      TURNBOX_WARM_REFILL_RATE: String(REFILL_PER_SECOND),
    };
    await using made = new AsyncDisposableStack();
    const home = made.use(await makeHome());
    const server = made.use(await startServer({ home: home.path, env }));
    const control = made.use(connectTurnbox({ url: server.url, token: server.token }));
    const { instances } = await control.fleet.listInstances({});
    const pool = await findPool(server.home);
    const hostUrl = instances[0]?.url ?? "";
    if (pool === undefined || hostUrl === "") throw new Error("the server has no host with a pool");
    return new BenchServer(server, { control, hostUrl, pool, owned: made.move() });
  }

  /** Asks the host for its health over a connection such as the client library has: the cheapest call of a host. */
  health(): Client<typeof Health> {
    const connections = this.#owned.use(new ConnectionManager(this.hostUrl, CONNECTION_TIMES));
    return createClient(
      Health,
      createHttp2Transport(connections, { interceptors: [], readMaxBytes: ANSWER_MAX_BYTES }),
    );
  }

  /** Waits until all sessions of the pool stand ready again, and what was destroyed before has gone. */
  async poolIsFull(): Promise<void> {
    await until("the pool to be full", async () => (await this.host.host.getStats({})).warmSessions >= WARM_SESSIONS);
    await delay(SETTLE_MS);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }
}
