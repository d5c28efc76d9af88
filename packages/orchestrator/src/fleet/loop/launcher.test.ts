import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { createFakeFleet, type FakeFleet } from "../fake-fleet.suite.ts";

const CALL = { signal: new AbortController().signal };
const policy = { minInstances: 1, maxInstances: 2 };

/** A fleet whose launches fail with these, one after another. */
const failing = (...errors: readonly SandboxError[]): Promise<FakeFleet> => {
  const left = [...errors];
  const boot = async (): Promise<void> => {
    await Promise.resolve();
    const error = left.shift();
    if (error !== undefined) throw error;
  };
  return createFakeFleet({ instances: [], policy, provisioner: { boot } });
};

describe("a launch", () => {
  it("whose answer was lost is asked for again under the same id", async () => {
    const lost = new SandboxError("HOST_UNREACHABLE", "the connection broke", { admitted: "unknown" });
    await using fleet = await failing(lost, lost);
    await fleet.tick();
    expect(fleet.provisioner.launches).toEqual(["new-1", "new-1", "new-1"]);
    await fleet.tick();
    expect(fleet.registry.instance("new-1").state).toBe("ready");
  });

  it("whose outcome stays unknown counts as a machine that boots", async () => {
    const lost = new SandboxError("HOST_UNREACHABLE", "the connection broke", { admitted: "unknown" });
    await using fleet = await failing(lost, lost, lost);
    for (let round = 0; round < 5; round += 1) await fleet.tick();
    expect(new Set(fleet.provisioner.launches)).toEqual(new Set(["new-1"]));
    expect(await fleet.store.listInstances(CALL)).toMatchObject([{ instanceId: "new-1", hasAnswered: false }]);
  });

  it("that was refused leaves nothing on record, and the next one waits a while", async () => {
    await using fleet = await failing(new SandboxError("OVERLOADED", "no capacity"));
    await fleet.tick();
    expect(await fleet.store.listInstances(CALL)).toEqual([]);
    await fleet.tick();
    expect(fleet.provisioner.launches).toHaveLength(1);
    await fleet.clock.advance(5000);
    await fleet.tick();
    await fleet.tick();
    expect(fleet.registry.instances().map(({ state }) => state)).toEqual(["ready"]);
  });
});
