import { describe, expect, it } from "@jest/globals";
import { createFakeFleet, type FakeFleet } from "../fake-fleet.suite.ts";

const CALL = { signal: new AbortController().signal };
const T1 = { ...CALL, tenant: "t1" };
const REQUEST = { idempotencyKey: "", labels: {}, template: "", resources: {}, lifetime: {}, env: {} };

/** A fleet whose only instance was stopped with a sandbox on it. */
async function asleep(): Promise<{ readonly fleet: FakeFleet; readonly sandboxId: string }> {
  const fleet = await createFakeFleet({ instances: ["i-1"] });
  const { sandboxId } = await fleet.control.createSandbox(REQUEST, T1);
  await fleet.operations.drain({ instanceId: "i-1", timeoutMs: 0, sessions: "keep" }, CALL);
  for (let round = 0; round < 3; round += 1) {
    await fleet.tick();
    await fleet.clock.advance(5000);
  }
  expect(fleet.registry.instance("i-1").state).toBe("stopped");
  return { fleet, sandboxId };
}

describe("the first use of a stopped instance", () => {
  it("waits for its host, and goes on when some of its callers leave", async () => {
    const { fleet, sandboxId } = await asleep();
    await using _fleet = fleet;
    fleet.host("i-1").setReachable("silent");
    const leaving = new AbortController();
    const left = fleet.control.getSandbox({ sandboxId }, { ...T1, signal: leaving.signal });
    const waiting = fleet.control.resumeSandbox({ sandboxId, idempotencyKey: "" }, T1);
    left.catch(() => undefined);
    await fleet.clock.advance(10_000);
    leaving.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    fleet.host("i-1").setReachable("reachable");
    await fleet.clock.advance(2000);
    expect((await waiting).session.state).toBe("active");
    expect(fleet.registry.row("i-1")).toMatchObject({ goal: "running", drain: { reason: "operator" } });
  });

  it("works through a replica that does not lead", async () => {
    const { fleet, sandboxId } = await asleep();
    await using _fleet = fleet;
    await using other = await fleet.replica("o-9");
    expect((await other.control.getSandbox({ sandboxId }, T1)).session.state).toBe("paused");
    await fleet.tick();
    expect(fleet.registry.instance("i-1").state).toBe("draining");
  });

  it("says in time that it did not come up, and that nothing happened", async () => {
    const { fleet, sandboxId } = await asleep();
    await using _fleet = fleet;
    fleet.host("i-1").setReachable("silent");
    const waiting = fleet.control.getSandbox({ sandboxId }, T1);
    waiting.catch(() => undefined);
    await fleet.clock.advance(121_000);
    await expect(waiting).rejects.toMatchObject({ reason: "HOST_UNREACHABLE", admitted: "no" });
  });
});
