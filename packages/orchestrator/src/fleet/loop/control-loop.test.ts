import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { createFakeFleet, type FakeFleet } from "../fake-fleet.suite.ts";
import { fleetTags } from "../registry/fleet-tags.ts";

const CALL = { signal: new AbortController().signal };
const T1 = { ...CALL, tenant: "t1" };
const REQUEST = { idempotencyKey: "", labels: {}, template: "", resources: {}, lifetime: {}, env: {} };

const states = (fleet: FakeFleet): Readonly<Record<string, string>> =>
  Object.fromEntries(fleet.registry.instances().map(({ instanceId, state }) => [instanceId, state]));
async function ticks(fleet: FakeFleet, count: number, everyMs = 5000): Promise<void> {
  for (let left = count; left > 0; left -= 1) {
    await fleet.tick();
    await fleet.clock.advance(everyMs);
  }
}

describe("the control loop", () => {
  it("brings an empty fleet to its least number and its warm ones, and launches nothing more while they boot (D31, D32)", async () => {
    let answer = (): void => undefined;
    const booted = new Promise<void>((resolve) => (answer = resolve));
    await using fleet = await createFakeFleet({
      instances: [],
      policy: { minInstances: 1, maxInstances: 5, warmPoolTarget: 2 },
      provisioner: { boot: () => booted },
    });
    for (let round = 0; round < 5; round += 1) await fleet.loop.tick(CALL);
    expect(fleet.provisioner.launches).toEqual(["new-1", "new-2"]);
    expect(states(fleet)).toEqual({ "new-1": "provisioning", "new-2": "provisioning" });
    answer();
    await fleet.executor.idle();
    await ticks(fleet, 3);
    expect(states(fleet)).toEqual({ "new-1": "ready", "new-2": "ready" });
    expect(fleet.provisioner.launches).toHaveLength(2);
  });

  it("never adopts a machine without the fleet's mark, nor ends it (D33)", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"], policy: { maxInstances: 1 } });
    await fleet.provisioner.launch({ instanceId: "x-1", tags: fleetTags("f2") }, CALL);
    await ticks(fleet, 3);
    expect((await fleet.store.listInstances(CALL)).map(({ instanceId }) => instanceId)).toEqual(["i-1"]);
    expect(fleet.provisioner.terminations).toEqual([]);
  });

  it("keeps new sandboxes off a silent host and takes it back, and ends nothing (hysteresis both ways)", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1", "i-2"], policy: { minInstances: 2 } });
    fleet.host("i-1").setReachable("silent");
    await ticks(fleet, 2);
    expect(states(fleet)["i-1"]).toBe("ready");
    await ticks(fleet, 2);
    expect(fleet.registry.instance("i-1")).toMatchObject({ state: "draining", drainReason: "health" });
    await ticks(fleet, 3, 3_600_000);
    expect(states(fleet)["i-1"]).toBe("draining");
    fleet.host("i-1").setReachable("reachable");
    await ticks(fleet, 2);
    expect(states(fleet)["i-1"]).toBe("draining");
    await ticks(fleet, 2);
    expect(states(fleet)).toEqual({ "i-1": "ready", "i-2": "ready" });
    expect(fleet.provisioner.terminations).toEqual([]);
  });

  it("takes an empty answer of the cloud for no proof", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    const made = await fleet.control.createSandbox(REQUEST, T1);
    fleet.provisioner.hide("i-1");
    await ticks(fleet, 10);
    expect(await fleet.control.getSandbox({ sandboxId: made.sandboxId }, T1)).toMatchObject({
      address: "i-1.test:9100",
    });
    fleet.host("i-1").setReachable("silent");
    await ticks(fleet, 10);
    expect(fleet.registry.instance("i-1").message).toContain("not listed any more");
    fleet.provisioner.show("i-1");
    fleet.host("i-1").setReachable("reachable");
    await ticks(fleet, 5);
    expect(states(fleet)).toEqual({ "i-1": "active" });
  });

  it("ends nothing that turns out to hold a sandbox when it is asked once more (D27)", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    await fleet.host("i-1").createSandbox(REQUEST, T1);
    fleet.host("i-1").setReport({ sessionCount: 0 });
    await fleet.operations.drain({ instanceId: "i-1", timeoutMs: undefined, sessions: "keep" }, CALL);
    await ticks(fleet, 3);
    expect(fleet.provisioner.terminations).toEqual([]);
    expect(fleet.host("i-1").admission).toBe("closed");
    await fleet.control.destroySandbox(
      { sandboxId: `fleet:i-1:${fleet.host("i-1").sandboxIds()[0] ?? ""}`, idempotencyKey: "" },
      T1,
    );
    await ticks(fleet, 3);
    expect(fleet.provisioner.terminations).toEqual(["i-1"]);
    expect(fleet.registry.instances()).toEqual([]);
  });

  it("gives an idle machine back and keeps what is wanted", async () => {
    await using fleet = await createFakeFleet({
      policy: { maxInstances: 2, warmPoolTarget: 1, idleCooldownMs: 60_000 },
    });
    await ticks(fleet, 2, 61_000);
    await ticks(fleet, 5);
    expect(fleet.provisioner.terminations).toHaveLength(1);
    expect(Object.values(states(fleet))).toEqual(["ready"]);
  });

  it("ends a machine that never came up, and launches another", async () => {
    await using fleet = await createFakeFleet({ instances: [], policy: { minInstances: 1, maxInstances: 2 } });
    fleet.host("new-1").setReachable("silent");
    await ticks(fleet, 2);
    expect(states(fleet)).toEqual({ "new-1": "provisioning" });
    await fleet.clock.advance(300_000);
    await ticks(fleet, 4);
    expect(fleet.provisioner.terminations).toEqual(["new-1"]);
    expect(states(fleet)).toEqual({ "new-2": "ready" });
  });

  it("lets only one of two replicas act, and the other within the time of a lease once it is gone", async () => {
    await using fleet = await createFakeFleet({ instances: [], policy: { minInstances: 1, maxInstances: 1 } });
    await using other = await fleet.replica("o-9");
    await fleet.tick();
    await other.loop.tick(CALL);
    await other.executor.idle();
    expect(fleet.provisioner.launches).toEqual(["new-1"]);
    expect(other.leadership.lead).toBeUndefined();
    await fleet.clock.advance(15_000);
    await other.loop.tick(CALL);
    expect(other.leadership.lead?.epoch).toBe(2);
    await other.executor.idle();
    expect(fleet.provisioner.launches).toEqual(["new-1"]);
    await fleet.tick();
    expect(fleet.leadership.lead).toBeUndefined();
  });

  it("stops at once when a host has seen a later lease", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    await fleet.host("i-1").setAdmission("open", { ...CALL, epoch: 99 });
    await fleet.tick();
    const lead = fleet.leadership.lead;
    await fleet.operations.cordon("i-1", CALL);
    await fleet.tick();
    expect(lead?.signal.aborted).toBe(true);
    expect(SandboxError.from(lead?.signal.reason).reason).toBe("EPOCH_STALE");
  });
});
