import { describe, expect, it } from "@jest/globals";
import { createFakeFleet, type FakeFleet } from "./fake-fleet.suite.ts";

const CALL = { signal: new AbortController().signal };
const T1 = { ...CALL, tenant: "t1" };
const REQUEST = { idempotencyKey: "", labels: {}, template: "", resources: {}, lifetime: {}, env: {} };
const keep = { instanceId: "i-1", timeoutMs: 60_000, sessions: "keep" } as const;

async function ticks(fleet: FakeFleet, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 1) {
    await fleet.tick();
    await fleet.clock.advance(5000);
  }
}

describe("the operations of a fleet", () => {
  it("cordons on record and on the host, and takes it back", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    expect(await fleet.operations.cordon("i-1", CALL)).toMatchObject({ cordoned: true, state: "ready" });
    await expect(fleet.control.createSandbox(REQUEST, T1)).rejects.toMatchObject({ reason: "FLEET_EXHAUSTED" });
    await ticks(fleet, 2);
    expect(fleet.host("i-1").admission).toBe("closed");
    expect(await fleet.operations.uncordon("i-1", CALL)).toMatchObject({ cordoned: false });
    await ticks(fleet, 2);
    expect(fleet.host("i-1").admission).toBe("open");
    await fleet.control.createSandbox(REQUEST, T1);
  });

  it("says that an instance is unknown", async () => {
    await using fleet = await createFakeFleet({ instances: [] });
    const unknown = expect.objectContaining({ reason: "INSTANCE_NOT_FOUND" });
    await expect(fleet.operations.cordon("i-9", CALL)).rejects.toEqual(unknown);
    await expect(fleet.operations.drain({ ...keep, instanceId: "i-9" }, CALL)).rejects.toEqual(unknown);
  });

  it("pauses what is left at the end of a drain, stops the machine, and starts it on first use with all it holds", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"], policy: { maxInstances: 1 } });
    const made = await fleet.control.createSandbox(REQUEST, T1);
    await fleet.operations.drain(keep, CALL);
    await ticks(fleet, 3);
    expect(fleet.registry.instance("i-1")).toMatchObject({ state: "draining", drainReason: "operator" });
    await fleet.clock.advance(60_000);
    await ticks(fleet, 2);
    expect(fleet.registry.instance("i-1")).toMatchObject({ state: "stopped" });
    expect(fleet.host("i-1").sandboxes()[0]?.sandbox.session.state).toBe("paused");
    await ticks(fleet, 5);
    const found = await Promise.all([1, 2, 3].map(() => fleet.control.getSandbox({ sandboxId: made.sandboxId }, T1)));
    expect(found.map(({ session }) => session.state)).toEqual(["paused", "paused", "paused"]);
    await ticks(fleet, 3);
    expect(fleet.registry.instance("i-1")).toMatchObject({ state: "draining" });
    expect(fleet.provisioner.terminations).toEqual([]);
  });

  it("leaves a drain as it is when it is asked for again, and ends it when it is taken back", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    await fleet.operations.drain({ ...keep, timeoutMs: undefined }, CALL);
    const before = await fleet.store.listInstances(CALL);
    await fleet.clock.advance(1000);
    await fleet.operations.drain({ ...keep, timeoutMs: undefined }, CALL);
    expect(await fleet.store.listInstances(CALL)).toEqual(before);
    expect(await fleet.operations.uncordon("i-1", CALL)).toMatchObject({ state: "ready", drainReason: undefined });
  });

  it("ends a machine with what it holds only where that was said", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    await fleet.control.createSandbox(REQUEST, T1);
    await fleet.operations.drain({ ...keep, timeoutMs: 0, sessions: "discard" }, CALL);
    await ticks(fleet, 3);
    expect(fleet.provisioner.terminations).toEqual(["i-1"]);
  });

  it("replaces instances of an old image one at a time", async () => {
    await using fleet = await createFakeFleet({
      instances: ["i-1", "i-2"],
      policy: { minInstances: 2, maxInstances: 3 },
    });
    for (const instanceId of ["i-1", "i-2"]) {
      const row = fleet.registry.row(instanceId);
      if (row !== undefined) await fleet.store.putInstance({ ...row, image: "image-0" }, CALL);
    }
    await fleet.registry.refresh(CALL);
    expect(await fleet.operations.refresh({ image: "" }, CALL)).toEqual({ replacing: ["i-1", "i-2"], skipped: [] });
    await fleet.tick();
    expect(fleet.registry.instances().map(({ state }) => state)).toEqual(["terminating", "ready"]);
    await ticks(fleet, 12);
    expect(fleet.provisioner.terminations).toEqual(["i-1", "i-2"]);
    expect(fleet.registry.instances().map(({ image, state }) => [image, state])).toEqual([
      ["image-1", "ready"],
      ["image-1", "ready"],
    ]);
    await expect(fleet.operations.refresh({ image: "other" }, CALL)).rejects.toMatchObject({
      reason: "INVALID_ARGUMENT",
    });
  });
});
