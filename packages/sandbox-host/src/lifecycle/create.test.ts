import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { SIGNAL, startTestHost } from "../compose.suite.ts";
import { until } from "../session/rig.suite.ts";

const BROKEN = new SandboxError("STORAGE_UNAVAILABLE", "broken by the test");

describe("createSession", () => {
  it("never exceeds the limit under racing creates", async () => {
    await using test = await startTestHost({ maxSessions: 3 });
    const results = await Promise.allSettled(Array.from({ length: 10 }, () => test.create()));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    for (const result of results) {
      if (result.status === "rejected") expect(result.reason).toMatchObject({ reason: "MAX_SESSIONS_REACHED" });
    }
  });

  it("gives an id to one of several racing creates", async () => {
    await using test = await startTestHost();
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => test.create({ sessionId: "mine" })));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const result of results) {
      if (result.status === "rejected") expect(result.reason).toMatchObject({ reason: "SESSION_EXISTS" });
    }
  });

  it("returns the same session for the same key, joins the one in flight, and refuses another payload", async () => {
    await using test = await startTestHost();
    const request = { idempotencyKey: "k", payload: "p" };
    const [first, second] = await Promise.all([test.create(request), test.create(request)]);
    const third = await test.create(request);
    expect([second.row.id, third.row.id]).toEqual([first.row.id, first.row.id]);
    await expect(test.create({ idempotencyKey: "k", payload: "other" })).rejects.toMatchObject({
      reason: "IDEMPOTENCY_CONFLICT",
    });
    expect(test.host.registry.size).toBe(1);
  });

  it("remembers the key over a restart", async () => {
    const before = await startTestHost();
    const { row } = await before.create({ idempotencyKey: "k", payload: "p" });
    await using after = await before.restart();
    expect((await after.create({ idempotencyKey: "k", payload: "p" })).row.id).toBe(row.id);
  });

  it("leaves nothing behind when the storage fails, and the same id and key work again", async () => {
    await using test = await startTestHost();
    test.storage.faults.failNext("createSession", { error: BROKEN, when: "after" });
    const request = { sessionId: "mine", idempotencyKey: "k", payload: "p" };
    await expect(test.create(request)).rejects.toBe(BROKEN);
    expect(test.host.registry.size).toBe(0);
    expect(await test.storage.inventory({ signal: SIGNAL })).toEqual([]);
    expect((await test.create(request)).row.phase.kind).toBe("active");
  });

  it("keeps the id and removes what is left later, if even the undo fails", async () => {
    await using test = await startTestHost();
    test.storage.faults.failNext("createSession", { error: BROKEN, when: "after" });
    test.storage.faults.failNext("destroySession", { error: BROKEN });
    await expect(test.create({ sessionId: "mine" })).rejects.toBe(BROKEN);
    await until(() => test.host.registry.size === 0);
    expect(await test.storage.inventory({ signal: SIGNAL })).toEqual([]);
    const again = await test.create({ sessionId: "mine" });
    expect(await test.host.records.call("listSessions", null)).toMatchObject([{ id: "mine", token: again.row.token }]);
  });

  it("never returns for a replayed key a session that took the id later", async () => {
    await using test = await startTestHost();
    const request = { sessionId: "mine", idempotencyKey: "k", payload: "p" };
    const first = await test.create(request);
    await test.host.destroySession(first);
    await until(() => test.host.registry.size === 0);
    await test.create({ sessionId: "mine", tenant: "other", labels: { secret: "x" } });
    await expect(test.create(request)).rejects.toMatchObject({ reason: "SESSION_NOT_FOUND" });
  });

  it("refuses a bad id, an unknown template and a full pool, and changes nothing", async () => {
    await using test = await startTestHost();
    await expect(test.create({ sessionId: "../x" })).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    await expect(test.create({ base: "nope" })).rejects.toMatchObject({ reason: "TEMPLATE_NOT_FOUND" });
    await expect(test.create({ base: "mini@00000000" })).rejects.toMatchObject({ reason: "TEMPLATE_NOT_FOUND" });
    expect(test.host.registry.size + test.host.registry.reserved).toBe(0);
  });

  it("takes no new session where the pool is critical, while exec and destroy go on (D12)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    test.storage.setStatus({ state: "online", detail: "ONLINE", sizeBytes: 100, usedBytes: 96, availableBytes: 4 });
    await expect(expectEventually(() => test.create())).resolves.toMatchObject({ reason: "POOL_FULL" });
    expect((await test.bash(session, "echo still")).content).toBe("still\n");
    expect((await test.host.health.report()).grade).toBe("unhealthy");
    await test.host.destroySession(session);
  });

  it("counts every pool state but ONLINE and DEGRADED as unhealthy (D12)", async () => {
    await using test = await startTestHost();
    test.storage.setStatus({
      state: "unavailable",
      detail: "SUSPENDED",
      sizeBytes: 100,
      usedBytes: 1,
      availableBytes: 99,
    });
    await expect(expectEventually(() => test.create())).resolves.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
  });
});

/** The failure that comes once the host has looked at the pool again. */
async function expectEventually(attempt: () => Promise<unknown>): Promise<unknown> {
  const deadline = performance.now() + 10_000;
  while (performance.now() < deadline) {
    try {
      await attempt();
    } catch (thrown) {
      return thrown;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return undefined;
}
