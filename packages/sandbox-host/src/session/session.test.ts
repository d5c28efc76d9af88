import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { HOME, SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import type { PauseRequest } from "../lifecycle/pause.ts";
import type { Session } from "./session.ts";

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

  it("answers with the same session for the same key, joins the one in flight, and refuses another payload", async () => {
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

  it("keeps the id and removes what is left later, where even the undo fails", async () => {
    await using test = await startTestHost();
    test.storage.faults.failNext("createSession", { error: BROKEN, when: "after" });
    test.storage.faults.failNext("destroySession", { error: BROKEN });
    await expect(test.create({ sessionId: "mine" })).rejects.toBe(BROKEN);
    await until(() => test.host.registry.size === 0);
    expect(await test.storage.inventory({ signal: SIGNAL })).toEqual([]);
    const again = await test.create({ sessionId: "mine" });
    expect(await test.host.records.call("listSessions", null)).toMatchObject([{ id: "mine", token: again.row.token }]);
  });

  it("never answers a replayed key with a session that took the id later", async () => {
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

describe("destroySession", () => {
  it("is done once for several callers at once, from every phase (D2)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await test.bash(session, "echo boot");
    await Promise.all([
      test.host.destroySession(session),
      test.host.destroySession(session),
      test.host.destroySession(session),
    ]);
    await until(() => test.host.registry.size === 0);
    expect(await test.storage.inventory({ signal: SIGNAL })).toEqual([]);
    expect(await test.runtime.list({ signal: SIGNAL })).toEqual([]);
  });

  it("shows a dataset that cannot be destroyed in health and tries again until it is gone (D4)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    test.storage.faults.failNext("destroySession", { error: BROKEN });
    await test.host.destroySession(session);
    await until(async () => (await test.host.health.report()).removals.some(({ lastError }) => lastError !== ""));
    await expect(test.create({ sessionId: session.row.id })).rejects.toMatchObject({ reason: "SESSION_EXISTS" });
    await until(() => test.host.registry.size === 0);
    expect(await test.storage.inventory({ signal: SIGNAL })).toEqual([]);
  });

  it("ends a tool that is running", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await test.bash(session, "echo up");
    const running = test.bash(session, "sleep");
    await until(async () => (await test.runtime.processes(session.row.container ?? "", { signal: SIGNAL })) === 1);
    await test.host.destroySession(session);
    expect((await running).exitReason).toBe("killed");
    await expect(test.bash(session, "echo no")).rejects.toMatchObject({ reason: "SESSION_DESTROYING" });
  });

  it("goes on after a restart", async () => {
    const before = await startTestHost();
    const session = await before.create();
    for (let failures = 0; failures < 20; failures += 1)
      before.storage.faults.failNext("destroySession", { error: BROKEN });
    await before.host.destroySession(session);
    await using after = await before.restart();
    await until(() => after.host.registry.size === 0);
    expect(await after.storage.inventory({ signal: SIGNAL })).toEqual([]);
  });
});

describe("pauseSession", () => {
  const pause = (test: TestHost, session: Session, more: Partial<PauseRequest> = {}) =>
    test.host.pauseSession(
      session,
      { expectedGeneration: undefined, late: "refuse", drainTimeoutMs: 0, cause: "request", ...more },
      { signal: SIGNAL },
    );
  const resume = (test: TestHost, session: Session) =>
    test.host.resumeSession(session, { expectedGeneration: undefined }, { signal: SIGNAL });

  it("refuses new tools at once, waits for running ones, and no tool runs while it is paused (D3)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const { path } = await test.storage.mountHead(session.head, { signal: SIGNAL });
    const running = test.bash(session, "count /workspace/n");
    await until(() => existsSync(join(path, "workspace/n")));
    const pausing = pause(test, session, { late: "kill", drainTimeoutMs: 200 });
    let refused: unknown;
    while (refused === undefined) await test.bash(session, "echo x").catch((thrown: unknown) => (refused = thrown));
    expect(refused).toMatchObject({ reason: "SESSION_PAUSED" });
    await pausing;
    expect((await running).exitReason).toBe("killed");
    expect(session.gate.inFlight).toBe(0);
    expect(session.row.phase.kind).toBe("paused");
    await expect(test.bash(session, "echo x")).rejects.toMatchObject({ reason: "SESSION_PAUSED" });
    await resume(test, session);
    expect((await test.bash(session, "echo back")).content).toBe("back\n");
  });

  it("fails with tools in flight and leaves the session open, where it may not kill them", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const running = test.bash(session, "sleep");
    await until(() => session.gate.inFlight === 1);
    await expect(pause(test, session, { drainTimeoutMs: 20 })).rejects.toMatchObject({ reason: "TOOLS_IN_FLIGHT" });
    expect((await test.bash(session, "echo open")).content).toBe("open\n");
    session.killTools();
    await running;
  });

  it("is idempotent, keeps over a restart, and can be destroyed", async () => {
    const before = await startTestHost();
    const session = await before.create();
    await before.bash(session, "echo boot");
    await pause(before, session);
    await pause(before, session);
    await using after = await before.restart();
    const again = after.host.registry.get(session.row.id, HOME);
    expect(again.row.phase.kind).toBe("paused");
    expect(await after.runtime.liveness(again.row.container ?? "", { signal: SIGNAL })).toBe("paused");
    await expect(after.bash(again, "echo x")).rejects.toMatchObject({ reason: "SESSION_PAUSED" });
    await resume(after, again);
    await resume(after, again);
    expect(await after.runtime.liveness(again.row.container ?? "", { signal: SIGNAL })).toBe("running");
    await pause(after, again);
    await after.host.destroySession(again);
    await until(() => after.host.registry.size === 0);
  });
});

describe("a restart", () => {
  it("destroys nothing: sessions, files and the running container are there, and the next call works (D6)", async () => {
    const before = await startTestHost();
    const session = await before.create({ labels: { a: "b" } });
    await before.bash(session, "write /workspace/a.txt kept");
    await before.host.completeTurn(
      session,
      { turnKey: "", outcome: "succeeded", expectedGeneration: undefined },
      { signal: SIGNAL },
    );
    await using after = await before.restart();
    const again = after.host.registry.get(session.row.id, HOME);
    expect(again.row).toMatchObject({ labels: { a: "b" }, turnCounter: 1, generation: 1, phase: { kind: "active" } });
    expect((await after.bash(again, "cat /workspace/a.txt")).content).toBe("kept");
    expect(again.row).toMatchObject({ container: session.row.container, generation: 1 });
  });

  it("thaws what the stop froze before anybody calls, and boots nothing that is gone", async () => {
    const before = await startTestHost();
    const [frozen, gone] = [await before.create(), await before.create()];
    for (const session of [frozen, gone]) await before.bash(session, "echo boot");
    await before.runtime.pause(frozen.row.container ?? "", { signal: SIGNAL });
    before.runtime.crash(gone.row.container ?? "", "lost");
    await using after = await before.restart();
    const liveness = (id: string | null) => after.runtime.liveness(id ?? "", { signal: SIGNAL });
    await until(async () => (await liveness(frozen.row.container)) === "running");
    expect(after.host.registry.get(gone.row.id, HOME).row).toMatchObject({
      container: gone.row.container,
      generation: 1,
    });
    expect(await liveness(gone.row.container)).toBe("gone");
  });

  it("undoes a create that was cut off", async () => {
    const before = await startTestHost();
    const hold = before.storage.faults.holdNext("createSession");
    const cut = before.create().catch(() => undefined);
    await hold.entered;
    const restarting = before.restart();
    hold.release();
    await using after = await restarting;
    await cut;
    await until(() => after.host.registry.size === 0);
    expect(await after.storage.inventory({ signal: SIGNAL })).toEqual([]);
  });

  it("ends containers that no session owns, and leaves files without a record alone", async () => {
    const before = await startTestHost();
    const session = await before.create();
    await before.runtime.start(
      { id: "stray00000000000", rootPath: "/", hostname: "x", limits: {} },
      { signal: SIGNAL },
    );
    await before.host.records.call("deleteSession", session.row.token);
    await using after = await before.restart();
    expect(await after.runtime.list({ signal: SIGNAL })).toEqual([]);
    expect(await after.storage.inventory({ signal: SIGNAL })).toHaveLength(1);
  });
});

describe("a session that cannot be brought back", () => {
  it("is marked as failed and holds up no other", async () => {
    const before = await startTestHost();
    const [lost, kept] = [await before.create(), await before.create()];
    await before.storage.destroySession(lost.row.token, { signal: SIGNAL });
    await using after = await before.restart();
    expect(after.host.registry.find(lost.row.id)?.row.phase).toMatchObject({ kind: "failed" });
    const again = after.host.registry.get(kept.row.id, HOME);
    expect((await after.bash(again, "echo serving")).content).toBe("serving\n");
    await after.host.destroySession(after.host.registry.get(lost.row.id, HOME));
    await until(() => after.host.registry.size === 1);
  });
});

describe("a storage that died", () => {
  it("costs a session its container, and its files go on under a new generation", async () => {
    const before = await startTestHost();
    const session = await before.create();
    await before.bash(session, "write /workspace/a kept");
    const { container } = session.row;
    before.storage.loseMounts([session.head]);
    await using after = await before.restart();
    const again = after.host.registry.get(session.row.id, HOME);
    expect(again.row.generation).toBe(2);
    expect((await after.bash(again, "cat /workspace/a")).content).toBe("kept");
    expect(again.row.container).not.toBe(container);
  });
});

describe("a container that dies", () => {
  it("is replaced on the same files under a new generation", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await test.bash(session, "write /workspace/a.txt kept");
    test.runtime.crash(session.row.container ?? "", "lost");
    expect((await test.bash(session, "cat /workspace/a.txt")).content).toBe("kept");
    expect(session.row.generation).toBe(2);
  });

  it("is told to the call that ran in it", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const { path } = await test.storage.mountHead(session.head, { signal: SIGNAL });
    const running = test.bash(session, "count /workspace/n");
    await until(() => existsSync(join(path, "workspace/n")));
    test.runtime.crash(session.row.container ?? "", "oom");
    expect(await running).toMatchObject({ exitReason: "oom", isError: true });
  });
});

async function until(is: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!(await is())) {
    if (performance.now() > deadline) throw new Error("it did not come to be");
    await new Promise((resolve) => void setImmediate(resolve));
  }
}

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
