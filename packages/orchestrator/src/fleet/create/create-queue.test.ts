import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { createFakeFleet, type FakeFleet } from "../fake-fleet.suite.ts";

const CALL = { signal: new AbortController().signal };
const T1 = { ...CALL, tenant: "t1" };
const request = (key: string) => ({
  idempotencyKey: key,
  labels: {},
  template: "",
  resources: {},
  lifetime: {},
  env: {},
});
const growing = { instances: [], policy: { maxInstances: 3, warmPoolTarget: 0 } } as const;

async function eventually<T>(fleet: FakeFleet, work: Promise<T>): Promise<T> {
  const state = { done: false };
  const settled = work.finally(() => (state.done = true));
  settled.catch(() => undefined);
  for (let round = 0; round < 40 && !state.done; round += 1) {
    await fleet.tick();
    await fleet.clock.advance(1000);
  }
  return await settled;
}
const waits = async (fleet: FakeFleet, count: number): Promise<void> => {
  for (let round = 0; round < 100 && fleet.queue.waiting !== count; round += 1) await fleet.clock.advance(0);
  expect(fleet.queue.waiting).toBe(count);
};

describe("creates that find no room", () => {
  it("share one launch, and none goes to the machine before its host has answered (D28)", async () => {
    await using fleet = await createFakeFleet(growing);
    fleet.host("new-1").setReachable("silent");
    const creates = ["a", "b", "c"].map((key) => fleet.control.createSandbox(request(key), T1));
    await waits(fleet, 3);
    expect(await fleet.store.waitingCreates(CALL)).toBe(3);
    for (let round = 0; round < 5; round += 1) {
      await fleet.tick();
      await fleet.clock.advance(1000);
    }
    expect(fleet.provisioner.launches).toEqual(["new-1"]);
    expect(fleet.host("new-1").createdSessionIds).toEqual([]);
    fleet.host("new-1").setReachable("reachable");
    const made = await eventually(fleet, Promise.all(creates));
    expect(made.map(({ address }) => address)).toEqual(Array(3).fill("new-1.test:9100"));
    expect(fleet.provisioner.launches).toEqual(["new-1"]);
    expect(await fleet.store.waitingCreates(CALL)).toBe(0);
  });

  it("are served in the order in which they came, and none holds a slot meanwhile", async () => {
    await using fleet = await createFakeFleet({ ...growing, instances: ["i-1"] });
    fleet.host("i-1").setReport({ maxSessions: 1, sessionCount: 1 });
    await fleet.registry.refresh(CALL);
    const order: string[] = [];
    const creates = ["a", "b"].map(async (key) => {
      await fleet.control.createSandbox(request(key), T1);
      order.push(key);
    });
    await waits(fleet, 2);
    expect(fleet.slots.promised("i-1").sessions).toBe(0);
    fleet.host("i-1").setReport({ maxSessions: 1, sessionCount: 0 });
    await fleet.registry.refresh(CALL);
    await creates[0];
    expect(order).toEqual(["a"]);
    expect(fleet.queue.waiting).toBe(1);
    fleet.host("i-1").setReport({ maxSessions: 5 });
    await fleet.clock.advance(1);
    await fleet.registry.refresh(CALL);
    await creates[1];
  });

  it("leave the queue with their caller, and leave nothing behind", async () => {
    await using fleet = await createFakeFleet(growing);
    const leaving = new AbortController();
    const create = fleet.control.createSandbox(request("a"), { ...T1, signal: leaving.signal });
    create.catch(() => undefined);
    await waits(fleet, 1);
    leaving.abort(new Error("gone"));
    await expect(create).rejects.toThrow("gone");
    await waits(fleet, 0);
    await fleet.queue.idle();
    expect(await fleet.store.waitingCreates(CALL)).toBe(0);
  });

  it.each([
    ["as many wait already as may", { ...growing, maxWaitingCreates: 0 }, {}],
    ["the fleet is as large as it may be", { ...growing, policy: { maxInstances: 0 } }, {}],
    ["the fleet cannot grow", { ...growing, provisioner: { capabilities: { launch: "unsupported" } } }, {}],
    ["a further machine would come too late", growing, { timeoutMs: 10_000 }],
  ] as const)("are refused at once, with the time to wait, where %s", async (_what, options, call) => {
    await using fleet = await createFakeFleet(options);
    await expect(fleet.control.createSandbox(request("a"), { ...T1, ...call })).rejects.toMatchObject({
      reason: "FLEET_EXHAUSTED",
      retryAfterMs: expect.any(Number),
    });
  });

  it("fail in time if none came", async () => {
    await using fleet = await createFakeFleet({
      ...growing,
      provisioner: { boot: () => new Promise(() => undefined) },
    });
    const create = fleet.control.createSandbox(request("a"), { ...T1, timeoutMs: 40_000 });
    create.catch(() => undefined);
    await waits(fleet, 1);
    await fleet.clock.advance(39_500);
    await expect(create).rejects.toMatchObject({ reason: "FLEET_EXHAUSTED" });
  });

  it("wait for the only host while it has been silent for a moment, and are refused when that is an illness", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    await fleet.tick();
    fleet.host("i-1").setReachable("silent");
    await fleet.registry.refresh(CALL);
    const create = fleet.control.createSandbox(request("a"), T1);
    await waits(fleet, 1);
    await fleet.registry.refresh(CALL);
    await fleet.registry.refresh(CALL);
    await expect(fleet.control.createSandbox(request("b"), T1)).rejects.toMatchObject({ reason: "FLEET_EXHAUSTED" });
    fleet.host("i-1").setReachable("reachable");
    await fleet.registry.refresh(CALL);
    expect((await create).address).toBe("i-1.test:9100");
  });

  it("wait for a host that answers again after an illness, until it is taken back", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    await fleet.tick();
    fleet.host("i-1").setReachable("silent");
    for (let round = 0; round < 4; round += 1) await fleet.tick();
    expect(fleet.registry.instance("i-1")).toMatchObject({ state: "draining", drainReason: "health" });
    fleet.host("i-1").setReachable("reachable");
    await fleet.registry.refresh(CALL);
    const made = await eventually(fleet, fleet.control.createSandbox(request("a"), T1));
    expect(made.address).toBe("i-1.test:9100");
  });

  it("wait for a host that turns out to be starting again when they reach it", async () => {
    let isDown = true;
    const fleet = await createFakeFleet({
      instances: ["i-1"],
      hosts: {
        "i-1": {
          before: async (operation) => {
            await Promise.resolve();
            if (operation !== "createSandbox" || !isDown) return;
            isDown = false;
            fleet.provisioner.change("i-1", { state: "pending", url: undefined });
            throw new SandboxError("HOST_UNREACHABLE", "connection refused", { admitted: "no" });
          },
        },
      },
    });
    await using _fleet = fleet;
    await fleet.tick();
    const create = fleet.control.createSandbox(request("a"), T1);
    await waits(fleet, 1);
    fleet.provisioner.change("i-1", { state: "running", url: "http://i-1.test:9101" });
    await fleet.registry.refresh(CALL);
    expect((await create).sandboxId).toMatch(/^fleet:i-1:/);
  });
});
