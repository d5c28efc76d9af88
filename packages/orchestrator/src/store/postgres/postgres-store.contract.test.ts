import { type AddressInfo, createServer, type Socket } from "node:net";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Client } from "pg";
import type { SandboxRow } from "../store.ts";
import { storeSuite } from "../store.suite.ts";
import { migrate } from "./schema.ts";
import { MIGRATIONS } from "./migrations.ts";
import { CALL, newSchema, openFixture, type PostgresFixture, poll } from "./postgres-fixture.suite.ts";
import { POSTGRES_PASSWORD } from "./postgres-server.suite.ts";
import { openPostgresStore, type PostgresStoreOptions } from "./postgres-store.ts";

let fixture: PostgresFixture;

beforeAll(async () => {
  fixture = await openFixture();
}, 120_000);

afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
});

const open = (options: Partial<PostgresStoreOptions> = {}) =>
  openPostgresStore({ url: fixture.server.url, schema: newSchema(), ...options }, CALL);

const sandbox = (sessionId: string): SandboxRow => ({
  sessionId,
  tenant: "t1",
  name: undefined,
  labels: {},
  instanceId: undefined,
  phase: "creating",
  createdAtMs: 5,
});

storeSuite("postgres", async () => {
  const schema = newSchema();
  const store = await open({ schema });
  // The server's clock cannot be moved; what was written with it can.
  const passMs = async (ms: number): Promise<void> => {
    const sql = fixture.inSchema(schema);
    for (const table of ["lease", "demands"]) {
      await sql(`UPDATE ${table} SET expires_at_ms = expires_at_ms - ${String(ms)}`);
    }
  };
  return { store, passMs };
});

describe("the tables of openPostgresStore", () => {
  it("are made once by replicas that start at the same time, and all work on the same", async () => {
    const schema = newSchema();
    const stores = await Promise.all(Array.from({ length: 4 }, () => open({ schema, maxConnections: 2 })));
    await stores[0]?.beginCreate({ row: sandbox("s1") }, CALL);
    for (const store of stores) expect(await store.getSandbox("s1", CALL)).toBeDefined();
    await Promise.all(stores.map((store) => store[Symbol.asyncDispose]()));
    expect(await fixture.sql(`SELECT version FROM ${schema}.schema_version`)).toEqual([{ version: MIGRATIONS.length }]);
  });

  it("are those of one schema, so that fleets can share a database", async () => {
    await using one = await open();
    await using other = await open();
    await one.beginCreate({ row: sandbox("s1") }, CALL);
    await one.acquireLease({ holder: "a", ttlMs: 10_000 }, CALL);
    expect(await other.getSandbox("s1", CALL)).toBeUndefined();
    expect(await other.acquireLease({ holder: "b", ttlMs: 10_000 }, CALL)).toMatchObject({ epoch: 1 });
  });

  it("of version 1 are upgraded, and what is in them stays", async () => {
    const schema = newSchema();
    const sql = fixture.inSchema(schema);
    await migrate(sql, { schema, migrations: MIGRATIONS.slice(0, 1) });
    await sql("UPDATE lease SET epoch = 41");
    await sql("INSERT INTO sandboxes VALUES ('s1', 't1', 'web', '{\"app\":\"x\"}', 'i1', 'created', 7)");
    await using store = await open({ schema });
    expect(await store.getSandbox("s1", CALL)).toEqual({
      ...{ sessionId: "s1", tenant: "t1", name: "web", labels: { app: "x" }, instanceId: "i1" },
      ...{ phase: "created", createdAtMs: 7 },
    });
    expect(await store.acquireLease({ holder: "a", ttlMs: 10_000 }, CALL)).toMatchObject({ epoch: 42 });
    const further = "ALTER TABLE sandboxes ADD COLUMN note text NOT NULL DEFAULT 'none'";
    await migrate(sql, { schema, migrations: [...MIGRATIONS, further] });
    await migrate(sql, { schema, migrations: [...MIGRATIONS, further] });
    expect(await sql("SELECT session_id, note FROM sandboxes")).toEqual([{ session_id: "s1", note: "none" }]);
    expect(await sql("SELECT version FROM schema_version")).toEqual([{ version: MIGRATIONS.length + 1 }]);
  });

  it("belong to the fleet that came first, and are refused to another one and to another signing key", async () => {
    const schema = newSchema();
    const claim = { fleetId: "f1", keyFingerprint: "k1" };
    const opened = await Promise.all([open({ schema, claim }), open({ schema, claim })]);
    for (const store of opened) await store[Symbol.asyncDispose]();
    const refused = (message: string) => ({ reason: "CONFIG_INVALID", message: expect.stringContaining(message) });
    await expect(open({ schema, claim: { ...claim, fleetId: "f2" } })).rejects.toMatchObject(refused("the fleet f1"));
    await expect(open({ schema, claim: { ...claim, keyFingerprint: "k2" } })).rejects.toMatchObject(refused("key"));
    await using again = await open({ schema, claim });
    expect(await again.listInstances(CALL)).toEqual([]);
  });

  it("of a newer version are refused and left as they are", async () => {
    const schema = newSchema();
    await (await open({ schema }))[Symbol.asyncDispose]();
    await fixture.sql(`UPDATE ${schema}.schema_version SET version = 99`);
    await expect(open({ schema })).rejects.toMatchObject({
      reason: "HOME_VERSION_UNSUPPORTED",
      message: expect.stringContaining("version 99"),
    });
    expect(await fixture.sql(`SELECT version FROM ${schema}.schema_version`)).toEqual([{ version: 99 }]);
  });

  it("list 10,000 sandboxes in pages, quickly", async () => {
    const schema = newSchema();
    await using store = await open({ schema });
    await fixture.inSchema(schema)(
      `INSERT INTO sandboxes SELECT 's' || lpad(i::text, 6, '0'), 't' || (i % 2), NULL, '{}', 'i' || (i % 7), 'created', i
       FROM generate_series(1, 10000) AS i`,
    );
    const startMs = performance.now();
    const ids: string[] = [];
    for (let page = await store.listSandboxes({ tenant: "t1", after: "", limit: 100 }, CALL); page.length > 0; ) {
      ids.push(...page.map((row) => row.sessionId));
      page = await store.listSandboxes({ tenant: "t1", after: String(ids.at(-1)), limit: 100 }, CALL);
    }
    expect(ids).toHaveLength(5000);
    expect(ids).toEqual(ids.toSorted());
    expect(await store.listSandboxes({ tenant: "t1", instanceId: "i3", after: "", limit: 9999 }, CALL)).toHaveLength(
      715,
    );
    expect(performance.now() - startMs).toBeLessThan(10_000);
  });
});

describe("openPostgresStore", () => {
  it("says that the server is down, in time, and that nothing has happened", async () => {
    const url = "postgresql://turnbox:secret@127.0.0.1:1/postgres";
    const startMs = performance.now();
    await expect(open({ url, patienceMs: 200 })).rejects.toMatchObject({
      reason: "STORE_UNAVAILABLE",
      admitted: "no",
      retryable: true,
      message: expect.stringContaining("127.0.0.1:1/postgres"),
    });
    expect(performance.now() - startMs).toBeLessThan(5000);
  });

  it("does not wait for a server that takes the connection and says nothing, nor for a caller that is gone", async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket));
    await new Promise<void>((done) => silent.listen(0, "127.0.0.1", done));
    const url = `postgresql://turnbox:x@127.0.0.1:${String((silent.address() as AddressInfo).port)}/postgres`;
    await expect(open({ url, connectTimeoutMs: 100, patienceMs: 300 })).rejects.toMatchObject({
      reason: "STORE_UNAVAILABLE",
    });
    const leaving = new AbortController();
    const asked = sockets.length;
    const opening = expect(openPostgresStore({ url }, leaving)).rejects.toThrow("gone");
    await poll("the server is asked", () => (sockets.length > asked ? true : undefined));
    leaving.abort(new Error("gone"));
    await opening;
    for (const socket of sockets) socket.destroy();
    await new Promise((done) => silent.close(done));
  });

  it("names neither the password nor the url when the server does not let it in", async () => {
    const url = fixture.server.url.replace("turnbox:", "somebody:");
    const error: unknown = await open({ url }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ reason: "CONFIG_INVALID", message: expect.stringContaining("somebody") });
    const shown = inspect(error, { depth: 20, showHidden: true });
    for (const secret of [POSTGRES_PASSWORD, encodeURIComponent(POSTGRES_PASSWORD)])
      expect(shown).not.toContain(secret);
  });

  it("refuses a schema that is no plain name", async () => {
    await expect(open({ schema: 'x"; DROP' })).rejects.toMatchObject({ reason: "CONFIG_INVALID" });
  });

  it("leaves a wait at the server when the caller goes, and serves the next", async () => {
    const schema = newSchema();
    await using store = await open({ schema, maxConnections: 1 });
    const blocker = new Client({ connectionString: fixture.server.url });
    await blocker.connect();
    await blocker.query(`BEGIN; SELECT * FROM ${schema}.lease FOR UPDATE`);
    const leaving = new AbortController();
    const waiting = expect(store.acquireLease({ holder: "a", ttlMs: 10_000 }, leaving)).rejects.toThrow("gone");
    await poll("the store waits for the lock", async () => {
      const [found] = await fixture.sql("SELECT 1 AS x FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
      return found;
    });
    leaving.abort(new Error("gone"));
    await waiting;
    expect(await store.listInstances(CALL)).toEqual([]);
    await blocker.end();
    expect(await store.acquireLease({ holder: "b", ttlMs: 10_000 }, CALL)).toEqual({ holder: "b", epoch: 1 });
  });

  it("ends what is under way when it is closed, and answers nothing afterwards", async () => {
    const store = await open();
    const asked = Array.from({ length: 30 }, () => store.listInstances(CALL));
    await store[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
    for (const one of await Promise.allSettled(asked)) {
      if (one.status === "rejected") expect(one.reason).toMatchObject({ reason: "SHUTTING_DOWN" });
    }
    await expect(store.listInstances(CALL)).rejects.toMatchObject({ reason: "SHUTTING_DOWN" });
  });
});
