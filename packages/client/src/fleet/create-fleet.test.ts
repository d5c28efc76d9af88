import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { fleetInstance } from "../fake/fake-fleet-service.ts";
import { openRoom } from "../fake/room.suite.ts";
import { DrainReason, FleetEventKind, InstanceState } from "../fake/wire.ts";
import { toInstance } from "./to-instance.ts";
import { missedEvents } from "./watch-fleet.ts";

describe("the fleet", () => {
  it("describes its instances in plain words", async () => {
    using room = await openRoom();
    const draining = { state: InstanceState.DRAINING, drainReason: DrainReason.SCALE_DOWN, maxSessions: 0, url: "" };
    room.world.instances = [fleetInstance("i-a"), fleetInstance("i-b", draining)];
    expect(await room.harness.turnbox.fleet.instances()).toMatchObject([
      { id: "i-a", state: "active", drainReason: undefined, sandboxCount: 3, maxSandboxes: 50 },
      { id: "i-b", state: "draining", drainReason: "scale_down", maxSandboxes: undefined, url: undefined },
    ]);
  });

  it("changes instances under one key for all attempts", async () => {
    using room = await openRoom();
    const { turnbox, faults } = room.harness;
    room.world.instances = [fleetInstance("i-a")];
    faults.set("DrainInstance", ["lost"]);
    expect(await turnbox.fleet.drain("i-a", { graceMs: 1500 })).toMatchObject({ drainReason: "operator" });
    const [first, second] = room.harness.sent("DrainInstance");
    expect(first).toMatchObject({ instanceId: "i-a", timeout: { seconds: 1n, nanos: 500_000_000 } });
    expect(second?.["idempotencyKey"]).toBe(first?.["idempotencyKey"]);
  });

  it("reports what hosts have, and why one did not answer", async () => {
    using room = await openRoom();
    room.harness.faults.set("GetStats", [new SandboxError("PERMISSION_DENIED", "no")]);
    expect(await room.harness.turnbox.fleet.hosts()).toMatchObject([{ error: { reason: "PERMISSION_DENIED" } }]);
    expect(await room.harness.turnbox.fleet.hosts()).toMatchObject([{ stats: { status: "healthy", sandboxCount: 2 } }]);
  });
});

describe("a watch of the fleet", () => {
  it("goes on over a connection that broke, with what was missed and nothing twice", async () => {
    using room = await openRoom();
    room.world.instances = [fleetInstance("i-a"), fleetInstance("i-b")];
    room.world.fleetEvents = async function* (signal) {
      yield { kind: FleetEventKind.CHANGED, instance: fleetInstance("i-c") };
      room.world.instances = [fleetInstance("i-a"), fleetInstance("i-c"), fleetInstance("i-d")];
      room.world.fleetEvents = async function* (later) {
        await new Promise((resolve) => later.addEventListener("abort", resolve, { once: true }));
        yield* [];
      };
      signal.throwIfAborted();
    };
    const seen: string[] = [];
    for await (const { kind, instance } of room.harness.turnbox.fleet.watch()) {
      seen.push(`${kind} ${instance.id}`);
      if (seen.length === 5) break;
    }
    expect(seen).toEqual(["existing i-a", "existing i-b", "changed i-c", "changed i-d", "removed i-b"]);
  });

  it("knows what must have happened between two lists", () => {
    const [a, b, c] = ["a", "b", "c"].map((id) => toInstance(fleetInstance(id)));
    const known = new Map([a, b].flatMap((one) => (one === undefined ? [] : [[one.id, one] as const])));
    const listed = [a, c].flatMap((one) => (one === undefined ? [] : [one]));
    expect(missedEvents(known, listed).map(({ kind, instance }) => `${kind} ${instance.id}`)).toEqual([
      "changed c",
      "removed b",
    ]);
  });
});
