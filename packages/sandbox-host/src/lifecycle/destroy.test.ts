import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { SIGNAL, startTestHost } from "../compose.suite.ts";
import { createRig, until } from "../session/rig.suite.ts";
import type { Session } from "../session/session.ts";
import { createDestroySession } from "./destroy.ts";

const BROKEN = new SandboxError("STORAGE_UNAVAILABLE", "broken by the test");

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

  it("answers a second destroy also where the session was forgotten in between, and keeps its receipt", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    const removed: Session[] = [];
    const removals = {
      remove: (one: Session) => void removed.push(one),
      pending: () => [],
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
    const destroySession = createDestroySession({ ...rig, removals, crashPoint: () => Promise.resolve() });
    await destroySession(session);
    await rig.records.call("deleteSession", session.row.token);
    const receipt = { scope: "s", key: "k", payloadHash: "h", result: "null", atMs: 1 };
    await destroySession(session, receipt);
    expect(removed).toEqual([session]);
    expect(await rig.records.call("findReceipt", { scope: "s", key: "k" })).toMatchObject({ payloadHash: "h" });
  });
});
