import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import type { InstanceRow } from "../../store/store.ts";
import { createFakeFleet } from "../fake-fleet.suite.ts";
import { fleetTags } from "./fleet-tags.ts";

const CALL = { signal: new AbortController().signal };
const only = <T>(values: readonly T[]): T => {
  const [first, ...others] = values;
  if (first === undefined || others.length > 0) throw new Error(`${String(values.length)} instead of one`);
  return first;
};

describe("InstanceRegistry", () => {
  it("D28: an instance is not ready before its host has answered", async () => {
    await using fleet = await createFakeFleet({ instances: [] });
    await fleet.provisioner.launch({ instanceId: "i-1", tags: fleetTags("f1") }, CALL);
    await fleet.registry.sync(CALL);
    expect(only(fleet.registry.instances())).toMatchObject({ state: "provisioning", health: "unknown" });
    expect(only([...fleet.registry.placementView()]).admission).toBe("booting");
    await fleet.registry.refresh(CALL);
    expect(only(fleet.registry.instances())).toMatchObject({ state: "ready", health: "healthy" });
    fleet.host("i-1").setReport({ sessionCount: 1 });
    await fleet.registry.refresh(CALL);
    expect(only(fleet.registry.instances())).toMatchObject({ state: "active", sessionCount: 1 });
  });

  it("D33: takes in no machines of other fleets", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    await fleet.provisioner.launch({ instanceId: "i-2", tags: fleetTags("f2") }, CALL);
    await fleet.registry.refresh(CALL);
    expect(fleet.registry.instanceIds()).toEqual(["i-1"]);
  });

  it("makes a new line for a host that came back elsewhere, disposes of the old one, and waits for its first answer", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    fleet.provisioner.change("i-1", { url: "http://i-1.test:9200" });
    await fleet.registry.sync(CALL);
    expect(fleet.host("i-1").disposals).toBe(1);
    expect(only(fleet.registry.instances())).toMatchObject({ state: "provisioning", url: "http://i-1.test:9200" });
  });

  it("D30: hands on what the host says about itself", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    fleet.host("i-1").setReport({ health: "unhealthy", problems: ["pool FAULTED"] });
    await fleet.registry.refresh(CALL);
    expect(only(fleet.registry.instances())).toMatchObject({ health: "unhealthy", message: "pool FAULTED" });
    expect(only([...fleet.registry.placementView()]).health).toBe("unhealthy");
  });

  it("keeps an instance that does not answer, but gives it nothing", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    const host = fleet.host("i-1");
    const report = host.report;
    host.report = () => Promise.reject(new SandboxError("HOST_UNREACHABLE", "no route"));
    await fleet.registry.refresh(CALL);
    expect(only(fleet.registry.instances())).toMatchObject({ state: "ready", health: "unknown", message: "no route" });
    host.report = report;
    await fleet.registry.refresh(CALL);
    expect(only(fleet.registry.instances())).toMatchObject({ health: "healthy", message: "" });
  });

  it("does not take a machine that is not there now for one that never was", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    const remembered: InstanceRow = {
      instanceId: "i-2",
      admission: "open",
      labels: {},
      createdAtMs: 1,
      image: "",
      drain: undefined,
      goal: "running",
      hasAnswered: true,
      version: 0,
    };
    await fleet.store.putInstance(remembered, CALL);
    await fleet.registry.sync(CALL);
    expect(() => fleet.registry.connection("i-2")).toThrow(
      expect.objectContaining({ reason: "HOST_UNREACHABLE", admitted: "no" }),
    );
    const page = await fleet.control.listSandboxes(
      { labels: {}, pageSize: 10, pageToken: "" },
      { ...CALL, tenant: "t1" },
    );
    expect(page.unreachableInstances).toEqual(["i-2"]);
  });

  it("forgets a machine that is gone when its record is", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    await fleet.provisioner.terminate("i-1", CALL);
    await fleet.registry.refresh(CALL);
    expect(only(fleet.registry.instances())).toMatchObject({ state: "terminating" });
    await fleet.store.deleteInstance("i-1", CALL);
    await fleet.registry.refresh(CALL);
    expect(fleet.registry.instances()).toEqual([]);
    expect(fleet.host("i-1").disposals).toBe(1);
    expect(() => fleet.registry.connection("i-1")).toThrow(expect.objectContaining({ reason: "INSTANCE_NOT_FOUND" }));
  });

  it("has it on record that a host has answered before anything is placed there", async () => {
    await using fleet = await createFakeFleet({ instances: [] });
    await fleet.provisioner.launch({ instanceId: "i-1", tags: fleetTags("f1") }, CALL);
    const { putInstance } = fleet.store;
    fleet.store.putInstance = () => Promise.resolve("changed");
    await fleet.registry.refresh(CALL);
    expect(only([...fleet.registry.placementView()]).admission).toBe("booting");
    fleet.store.putInstance = putInstance;
    await fleet.registry.refresh(CALL);
    expect(only(await fleet.store.listInstances(CALL))).toMatchObject({ instanceId: "i-1", hasAnswered: true });
    expect(only([...fleet.registry.placementView()]).admission).toBe("open");
  });

  it("D29: counts what was promised on top of what is reported", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    const claim = fleet.slots.claim("i-1", { cpus: 1, memoryBytes: 0, diskBytes: 0 });
    await fleet.registry.refresh(CALL);
    expect(only([...fleet.registry.placementView()]).sessions.used).toBe(1);
    expect(only(fleet.registry.views(() => 0)).sessions).toBe(1);
    claim[Symbol.dispose]();
    expect(only([...fleet.registry.placementView()]).sessions.used).toBe(0);
  });

  it("keeps asking the hosts when their maker does not answer", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    fleet.provisioner.list = () => Promise.reject(new SandboxError("OVERLOADED", "throttled"));
    fleet.host("i-1").setReport({ sessionCount: 7 });
    await expect(fleet.registry.refresh(CALL)).rejects.toMatchObject({ reason: "OVERLOADED" });
    expect(only(fleet.registry.instances()).sessionCount).toBe(7);
  });
});
