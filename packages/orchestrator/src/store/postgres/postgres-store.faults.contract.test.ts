import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { hasReason } from "@turnbox/core";
import { IDEMPOTENCY_RETENTION_MS, type InstanceRow, type SandboxRow, type Store } from "../store.ts";
import {
  CALL,
  type Cut,
  type CuttingProxy,
  newSchema,
  openCuttingProxy,
  openFixture,
  poll,
  type PostgresFixture,
} from "./postgres-fixture.suite.ts";
import { openPostgresStore } from "./postgres-store.ts";

let fixture: PostgresFixture;
let proxy: CuttingProxy;

beforeAll(async () => {
  fixture = await openFixture();
  proxy = await openCuttingProxy(fixture.server);
}, 120_000);

afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await fixture[Symbol.asyncDispose]();
});

const open = (schema: string, url = fixture.server.url) => openPostgresStore({ url, schema }, CALL);

const KEY = { tenant: "t1", method: "CreateSandbox", key: "k1" };
const BEGIN = { ...KEY, payloadHash: "h1", plan: "plan-1", nowMs: 1000 };
const sandbox = (sessionId: string, name?: string): SandboxRow => ({
  ...{ sessionId, tenant: "t1", name, labels: {}, instanceId: undefined },
  ...({ phase: "creating", createdAtMs: 5 } as const),
});
const instance: InstanceRow = {
  ...{ instanceId: "i1", labels: {}, createdAtMs: 1, image: "", drain: undefined, version: 0 },
  ...({ admission: "open", goal: "running", hasAnswered: false } as const),
};

interface CutCase {
  readonly what: string;
  readonly prepare?: (store: Store) => Promise<unknown>;
  readonly act: (store: Store) => Promise<unknown>;
  readonly answer: unknown;
  /** A table as it is afterwards. */
  readonly sql: string;
  readonly effect: unknown;
}

const CASES: readonly CutCase[] = [
  {
    what: "beginIdempotent",
    act: (store) => store.beginIdempotent(BEGIN, CALL),
    answer: { kind: "begun" },
    sql: "SELECT plan FROM idempotency",
    effect: [{ plan: "plan-1" }],
  },
  {
    what: "expireIdempotent",
    prepare: (store) => store.beginIdempotent(BEGIN, CALL),
    act: (store) => store.expireIdempotent(BEGIN.nowMs + IDEMPOTENCY_RETENTION_MS, CALL),
    answer: 1,
    sql: "SELECT plan FROM idempotency",
    effect: [],
  },
  {
    what: "beginCreate",
    act: (store) => store.beginCreate({ row: sandbox("s1", "web"), key: BEGIN }, CALL),
    answer: { kind: "reserved" },
    sql: "SELECT session_id, plan FROM sandboxes, idempotency",
    effect: [{ session_id: "s1", plan: "s1" }],
  },
  {
    what: "finishCreate",
    prepare: async (store) => {
      await store.beginCreate({ row: sandbox("s1", "web"), key: BEGIN }, CALL);
      await store.placeSandbox({ sessionId: "s1", instanceId: "i1", from: undefined }, CALL);
    },
    act: (store) => store.finishCreate({ sessionId: "s1", instanceId: "i1", key: KEY, result: "made" }, CALL),
    answer: "finished",
    sql: "SELECT phase, result FROM sandboxes, idempotency",
    effect: [{ phase: "created", result: "made" }],
  },
  {
    what: "putInstance",
    act: (store) => store.putInstance(instance, CALL),
    answer: "put",
    sql: "SELECT version::int FROM instances",
    effect: [{ version: 1 }],
  },
  {
    what: "acquireLease",
    act: (store) => store.acquireLease({ holder: "a", ttlMs: 60_000 }, CALL),
    answer: { holder: "a", epoch: 1 },
    sql: "SELECT epoch::int, holder FROM lease",
    effect: [{ epoch: 1, holder: "a" }],
  },
];

describe.each<Cut>(["lost", "unheard", "late"])("a commit whose line is cut (%s)", (how) => {
  it.each(CASES)("has one effect and the right answer: $what", async ({ prepare, act, answer, sql, effect }) => {
    const schema = newSchema();
    await using store = await open(schema, proxy.url);
    await prepare?.(store);
    const before = proxy.cuts;
    proxy.cutNextCommit(how);
    const acting = act(store);
    await poll("the commit is cut", () => (proxy.cuts > before ? true : undefined));
    if (how === "late") {
      // The server has the transaction open, and the store does not take that for an answer.
      const unsettled = await Promise.race([
        acting,
        poll("asked", () => undefined, { timeoutMs: 200 }).catch(() => "no answer"),
      ]);
      expect(unsettled).toBe("no answer");
      proxy.release();
    }
    expect(await acting).toEqual(answer);
    expect(await fixture.inSchema(schema)(sql)).toEqual(effect);
  });
});

describe("a cut commit among others", () => {
  it("does not take a key away that somebody else began since", async () => {
    const schema = newSchema();
    await using store = await open(schema, proxy.url);
    await using other = await open(schema);
    await store.beginIdempotent(BEGIN, CALL);
    proxy.cutNextCommit("unheard");
    const before = proxy.cuts;
    const abandoning = store.abandonIdempotent(KEY, CALL);
    await poll("the commit is cut", () => (proxy.cuts > before ? true : undefined));
    await poll("the key is free", async () =>
      (await other.beginIdempotent({ ...BEGIN, plan: "plan-2" }, CALL)).kind === "begun" ? true : undefined,
    );
    await abandoning;
    expect(await other.beginIdempotent(BEGIN, CALL)).toEqual({ kind: "pending", plan: "plan-2" });
  });
});

describe("the lease among replicas", () => {
  const ask = (store: Store, holder: string, ttlMs: number) => store.acquireLease({ holder, ttlMs }, CALL);

  it("goes to exactly one of two that race for it, again and again, under ever higher epochs", async () => {
    const schema = newSchema();
    await using one = await open(schema);
    await using other = await open(schema);
    let last = 0;
    for (let round = 0; round < 10; round++) {
      const leases = await Promise.all([ask(one, "a", 60_000), ask(other, "b", 60_000)]);
      const given = leases.filter((lease) => lease !== undefined);
      expect(given).toHaveLength(1);
      expect(given[0]?.epoch).toBe(++last);
      if (given[0] !== undefined) await one.releaseLease(given[0], CALL);
    }
  });

  it("passes on within its time when the holder is gone, and the holder's late writes are refused", async () => {
    const schema = newSchema();
    const ttlMs = 500;
    const holder = await open(schema);
    await using next = await open(schema);
    const first = await ask(holder, "a", ttlMs);
    await holder.putInstance(instance, { ...CALL, epoch: Number(first?.epoch) });
    const startMs = performance.now();
    const second = await poll("the lease is free", () => ask(next, "b", ttlMs), { timeoutMs: 5 * ttlMs });
    expect(performance.now() - startMs).toBeLessThan(5 * ttlMs);
    expect(second.epoch).toBeGreaterThan(Number(first?.epoch));
    await expect(
      holder.putInstance({ ...instance, goal: "terminated", version: 1 }, { ...CALL, epoch: Number(first?.epoch) }),
    ).rejects.toMatchObject({ reason: "EPOCH_STALE" });
    await holder[Symbol.asyncDispose]();
    expect(await next.listInstances(CALL)).toEqual([{ ...instance, version: 1 }]);
  });
});

describe("a server that stops, crashes and starts again under load", () => {
  it.each(["stop", "crash"] as const)(
    "%s: every operation ends, what was answered is there, and all goes on",
    async (how) => {
      const schema = newSchema();
      await using store = await open(schema);
      const answered: string[] = [];
      let isOver = false;
      const load = async (worker: number): Promise<void> => {
        for (let count = 0; !isOver; count++) {
          const id = `s-${String(worker)}-${String(count)}`;
          try {
            await store.beginCreate({ row: sandbox(id, id) }, CALL);
            answered.push(id);
          } catch (thrown) {
            if (!hasReason(thrown, "STORE_UNAVAILABLE")) throw thrown;
          }
        }
      };
      const lease = await store.acquireLease({ holder: "a", ttlMs: 60_000 }, CALL);
      const workers = Promise.all(Array.from({ length: 4 }, (_, worker) => load(worker)));
      await poll("the load runs", () => (answered.length > 20 ? true : undefined));
      await fixture.server[how]();
      await fixture.server.start();
      const before = answered.length;
      await poll("the load goes on", () => (answered.length > before + 20 ? true : undefined));
      isOver = true;
      await workers;
      const kept = new Set((await store.getSandboxes(answered, CALL)).map((row) => row.sessionId));
      expect(answered.filter((id) => !kept.has(id))).toEqual([]);
      expect(await store.acquireLease({ holder: "a", ttlMs: 60_000 }, CALL)).toEqual(lease);
    },
  );
});
