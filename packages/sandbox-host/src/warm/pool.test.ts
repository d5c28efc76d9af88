import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import type { NetworkPolicy } from "../network-policy/policy.ts";

const WARM = { warmSessions: 2, warmRefillDelay: 0, warmRefillRate: 1000 };
const CALL = { signal: SIGNAL };

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 10_000;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error("the condition did not come true in time");
    await delay(5);
  }
}
const allow = (...allowList: readonly string[]): NetworkPolicy => ({
  allowPublicIngress: false,
  allowOutbound: true,
  allowList,
  denyList: [],
  required: false,
});
const isFull =
  ({ host }: TestHost) =>
  (): boolean =>
    host.warm.stats().ready === WARM.warmSessions;

describe("warm sessions", () => {
  it("are there before the first create, and are in no list", async () => {
    await using test = await startTestHost(WARM);
    await until(isFull(test));
    expect(test.host.registry.all()).toEqual([]);
    expect((await test.runtime.list(CALL)).length).toBe(2);
    const stays = await test.host.records.call("listSessions", null);
    expect(stays.map(({ phase, tenant }) => [phase.kind, tenant])).toEqual(Array(2).fill(["creating", ""]));
    expect(stays.every(({ phase }) => phase.kind === "creating" && phase.readyIn !== undefined)).toBe(true);
  });

  it("become what a create asks for, under its own name, with their container", async () => {
    await using test = await startTestHost(WARM);
    await until(isFull(test));
    const before = await test.runtime.list(CALL);
    const session = await test.create({
      sessionId: "mine",
      tenant: "t1",
      labels: { a: "b" },
      env: { KEY: "value" },
      limits: { cpus: 2 },
      time: { ttlMs: 60_000, idleTimeoutMs: null, onTimeout: "pause" },
    });
    expect(session.row).toMatchObject({
      id: "mine",
      tenant: "t1",
      labels: { a: "b" },
      env: { KEY: "value" },
      limits: { cpus: 2 },
      phase: { kind: "active" },
      generation: 1,
      turnCounter: 0,
    });
    expect(session.row.timing.expiresAtMs).toBe(session.row.createdAtMs + 60_000);
    expect(before).toContain(session.row.container);
    expect((await test.bash(session, "write a.txt hello")).exitCode).toBe(0);
    expect(test.host.warm.stats()).toMatchObject({ hits: 1, misses: 0 });
    await until(isFull(test));
    await until(async () => {
      const marked = (await test.storage.inventory(CALL)).find(({ token }) => token === session.row.token);
      return marked?.marks["session_id"] === "mine" && marked.marks["tenant"] === "t1";
    });
  });

  it("answer the same key with the same session", async () => {
    await using test = await startTestHost(WARM);
    await until(isFull(test));
    const first = await test.create({ idempotencyKey: "k" });
    expect((await test.create({ idempotencyKey: "k" })).row.token).toBe(first.row.token);
    expect(test.host.warm.stats().hits).toBe(1);
  });

  it("are used as long as there are any, and creates are made the ordinary way where none is left", async () => {
    await using test = await startTestHost({ ...WARM, warmRefillDelay: 3_600_000 });
    await until(isFull(test));
    await test.create({ networkPolicy: allow("example.org") });
    expect(test.host.warm.stats()).toEqual({ ready: 2, hits: 0, misses: 1 });
    await Promise.all([test.create(), test.create(), test.create()]);
    expect(test.host.warm.stats()).toEqual({ ready: 0, hits: 2, misses: 2 });
  });

  it("get the bound of files that a create asks for", async () => {
    await using test = await startTestHost(WARM);
    await until(isFull(test));
    const { row } = await test.create({ quotaBytes: 1_000_000 });
    const [base] = await test.host.templates.list(CALL);
    expect(row.quotaBytes).toBe(1_000_000);
    expect(row.refquotaBytes).toBe((base?.referencedBytes ?? 0) + 1_000_000);
    const head = await test.storage.mountHead({ token: row.token, generation: 1 }, CALL);
    expect(head.refquotaBytes).toBe(row.refquotaBytes);
    expect(test.host.warm.stats()).toMatchObject({ hits: 1, misses: 0 });
  });

  it("that cannot be given what is wanted go, and the create is made the ordinary way", async () => {
    await using test = await startTestHost({ ...WARM, warmNetworkSessions: 1, warmRefillDelay: 3_600_000 });
    await until(() => test.host.warm.stats().ready === 3);
    test.storage.faults.failNext("boundSession", { error: new Error("not now") });
    const bounded = await test.create({ quotaBytes: 1_000_000 });
    expect(bounded.row.container).toBeNull();
    test.network.failNext(new Error("not now"));
    const networked = await test.create({ networkPolicy: allow("example.org") });
    expect(networked.row.container).toBeNull();
    expect(test.host.warm.stats()).toEqual({ ready: 1, hits: 0, misses: 2 });
    await until(async () => (await test.runtime.list(CALL)).length === 1);
    await until(async () => (await test.storage.presence(CALL)).length === 3);
    expect((await test.bash(bounded, "write a.txt hello")).exitCode).toBe(0);
  });

  it("have a network, too, which leads nowhere until a create says where to", async () => {
    await using test = await startTestHost({ ...WARM, warmNetworkSessions: 1, warmRefillDelay: 3_600_000 });
    await until(() => test.host.warm.stats().ready === 3);
    const [member = ""] = test.network.policies.keys();
    expect(test.network.policies.size).toBe(1);
    expect(test.network.connect(member, "example.org")).toBe("refused");
    const plain = await test.create();
    const closed = await test.create({ networkPolicy: { ...allow(), allowOutbound: false } });
    for (const { row } of [plain, closed]) expect(test.network.isAttached(row.container ?? "")).toBe(false);
    const { row } = await test.create({ networkPolicy: allow("example.org") });
    expect(row.container).toBe(member);
    expect(test.network.connect(member, "example.org")).toBe("connected");
    expect(test.network.connect(member, "example.com")).toBe("refused");
    expect(test.host.warm.stats()).toEqual({ ready: 0, hits: 3, misses: 0 });
  });

  it("are passed over where their sandbox has died", async () => {
    await using test = await startTestHost({ ...WARM, warmRefillDelay: 3_600_000 });
    await until(isFull(test));
    for (const id of await test.runtime.list(CALL)) test.runtime.crash(id, "lost");
    const session = await test.create();
    expect((await test.bash(session, "write a.txt hello")).exitCode).toBe(0);
    expect(session.row.generation).toBe(1);
    expect(test.host.warm.stats()).toMatchObject({ ready: 0, hits: 0, misses: 1 });
  });

  it("are no longer ready where their sandbox has died, and are made again", async () => {
    const clock = createManualClock();
    await using test = await startTestHost(WARM, { clock });
    const soon = (condition: () => boolean | Promise<boolean>): Promise<void> =>
      until(async () => {
        await clock.advance(1000);
        return await condition();
      });
    await soon(isFull(test));
    const [first = "", ...others] = await test.runtime.list(CALL);
    test.runtime.crash(first, "lost");
    await soon(async () => {
      const now = await test.runtime.list(CALL);
      return now.length === 2 && !now.includes(first);
    });
    expect(await test.runtime.list(CALL)).toEqual(expect.arrayContaining(others));
  });

  it("keep a waiting shell however long no create comes", async () => {
    const clock = createManualClock();
    await using test = await startTestHost(WARM, { clock });
    const soon = (condition: () => boolean): Promise<void> =>
      until(async () => {
        await clock.advance(1000);
        return condition();
      });
    await soon(isFull(test));
    const said = (id: string): number => test.runtime.anticipated.filter((one) => one === id).length;
    const containers = await test.runtime.list(CALL);
    expect(containers.length).toBe(2);
    await soon(() => containers.every((id) => said(id) >= 4));
  });

  it("give way while the storage is short of space, also if no create comes, and come back after it", async () => {
    const clock = createManualClock();
    await using test = await startTestHost(WARM, { clock });
    const soon = (condition: () => boolean): Promise<void> =>
      until(async () => {
        await clock.advance(1000);
        return condition();
      });
    await soon(isFull(test));
    test.storage.setStatus({ state: "online", detail: "ONLINE", sizeBytes: 100, usedBytes: 90, availableBytes: 10 });
    await soon(() => test.host.warm.stats().ready === 0);
    await until(async () => (await test.runtime.list(CALL)).length === 0);
    test.storage.setStatus(undefined);
    await soon(isFull(test));
  });

  it("let their template go also while one of it is being made", async () => {
    await using test = await startTestHost({ ...WARM, warmSessions: 50 });
    await until(() => test.host.warm.stats().ready > 0);
    const [base] = await test.host.templates.list(CALL);
    if (base === undefined) throw new Error("there is no template");
    await test.host.warm.release(base);
    await test.host.templates.remove(base, CALL);
    expect(await test.storage.presence(CALL)).toEqual([]);
  });

  it("let their template go", async () => {
    await using test = await startTestHost(WARM);
    await until(isFull(test));
    const [base] = await test.host.templates.list(CALL);
    if (base === undefined) throw new Error("there is no template");
    await test.host.warm.release(base);
    expect(test.host.warm.stats().ready).toBe(0);
    await test.host.templates.remove(base, CALL);
    await expect(test.create()).rejects.toMatchObject({ reason: "TEMPLATE_NOT_FOUND" });
  });
});
