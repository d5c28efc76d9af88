import { describe, expect, it } from "@jest/globals";
import type { Machine } from "../../provisioner/provisioner.ts";
import { createFakeFleet, type FakeFleet } from "../fake-fleet.suite.ts";

const CALL = { signal: new AbortController().signal };
const T1 = { ...CALL, tenant: "t1" };
const REQUEST = { idempotencyKey: "", labels: {}, template: "", resources: {}, lifetime: {}, env: {} };
const LIST = { labels: {}, pageSize: 10, pageToken: "" };

/** A fleet with one sandbox whose only host starts again, as it does with its orchestrator. */
async function comingBack(more: Partial<Machine> = {}): Promise<{ fleet: FakeFleet; sandboxId: string }> {
  const fleet = await createFakeFleet({ instances: ["i-1"] });
  await fleet.tick();
  const { sandboxId } = await fleet.control.createSandbox(REQUEST, T1);
  fleet.provisioner.change("i-1", { state: "pending", url: undefined, ...more });
  await fleet.registry.refresh(CALL);
  return { fleet, sandboxId };
}

async function arrive(fleet: FakeFleet): Promise<void> {
  fleet.provisioner.change("i-1", { state: "running", url: "http://i-1.test:9101" });
  await fleet.registry.refresh(CALL);
}

describe("calls that concern a host which is on its way back", () => {
  it("wait for its first answer", async () => {
    const { fleet, sandboxId } = await comingBack();
    await using _fleet = fleet;
    const calls = Promise.all([
      fleet.control.getSandbox({ sandboxId }, T1),
      fleet.control.listSandboxes(LIST, T1),
      fleet.control.createSandbox(REQUEST, T1),
      fleet.control.capabilities(T1),
      fleet.control.listTemplates(T1),
    ]);
    await fleet.clock.advance(5000);
    await arrive(fleet);
    const [found, listed, made] = await calls;
    expect(found.sandboxId).toBe(sandboxId);
    expect(listed.unreachableInstances).toEqual([]);
    expect(listed.sandboxes.map((sandbox) => sandbox.sandboxId)).toContain(sandboxId);
    expect(made.sandboxId).toMatch(/^fleet:i-1:/);
  });

  it("say in time that it did not come, and that nothing happened", async () => {
    const { fleet, sandboxId } = await comingBack();
    await using _fleet = fleet;
    const get = fleet.control.getSandbox({ sandboxId }, T1);
    const list = fleet.control.listSandboxes(LIST, T1);
    get.catch(() => undefined);
    await fleet.clock.advance(15_000);
    await expect(get).rejects.toMatchObject({ reason: "HOST_UNREACHABLE", admitted: "no" });
    expect((await list).unreachableInstances).toEqual(["i-1"]);
  });

  it("leave when their caller does", async () => {
    const { fleet, sandboxId } = await comingBack();
    await using _fleet = fleet;
    const leaving = new AbortController();
    const get = fleet.control.getSandbox({ sandboxId }, { ...T1, signal: leaving.signal });
    leaving.abort(new Error("gone"));
    await expect(get).rejects.toThrow("gone");
  });

  it("do not wait for one that has failed and is tried again", async () => {
    const { fleet, sandboxId } = await comingBack({ problem: "it ended" });
    await using _fleet = fleet;
    await expect(fleet.control.getSandbox({ sandboxId }, T1)).rejects.toMatchObject({ reason: "HOST_UNREACHABLE" });
    expect((await fleet.control.listSandboxes(LIST, T1)).unreachableInstances).toEqual(["i-1"]);
  });
});
