import { afterEach, describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { createMetrics } from "@turnbox/rpc/metrics";
import { createManualClock } from "@turnbox/core/testing";
import { NO_TRACING } from "@turnbox/rpc/trace";
import { createFakeSandboxControl } from "../control/fake/fake-sandbox-control.ts";
import type { FleetChange, FleetInstance } from "../fleet/fleet-view.ts";
import { createFakeFleet } from "../rpc/fake-fleet.suite.ts";
import { instance } from "../rpc/server.suite.ts";
import { registerFleetGauges } from "./fleet-gauges.ts";
import { FLEET_METRICS } from "./fleet-metrics.ts";
import { meterPorts } from "./meter-ports.ts";
import { watchSpans } from "./watch-spans.ts";

const call = { signal: new AbortController().signal, tenant: "t" };
const newMetrics = () => createMetrics(FLEET_METRICS);
const linesOf = async (metrics: ReturnType<typeof newMetrics>): Promise<readonly string[]> =>
  (await metrics.render()).text.split("\n");

describe("the gauges of a fleet", () => {
  it("tell instances by state and health, sandboxes, warm and cordoned ones, waiting creates and the lease", async () => {
    const metrics = newMetrics();
    registerFleetGauges(metrics, {
      fleet: createFakeFleet([
        instance("a", { state: "active", sessionCount: 4 }),
        instance("b"),
        instance("c", { cordoned: true, health: "unknown" }),
      ]),
      waitingCreates: () => Promise.resolve(3),
      epoch: () => 7,
    });
    expect(await linesOf(metrics)).toEqual(
      expect.arrayContaining([
        'turnbox_fleet_instances{state="ready"} 2',
        'turnbox_fleet_instances{state="active"} 1',
        'turnbox_fleet_instances{state="stopped"} 0',
        'turnbox_fleet_instance_health{health="unknown"} 1',
        "turnbox_fleet_warm_instances 1",
        "turnbox_fleet_cordoned_instances 1",
        "turnbox_fleet_sandboxes 4",
        "turnbox_fleet_waiting_creates 3",
        "turnbox_fleet_lease_held 1",
        "turnbox_fleet_lease_epoch 7",
      ]),
    );
  });

  it("do without what does not answer", async () => {
    const metrics = newMetrics();
    registerFleetGauges(metrics, {
      fleet: createFakeFleet([]),
      waitingCreates: () => Promise.reject(new Error("no database")),
      epoch: () => undefined,
    });
    const lines = await linesOf(metrics);
    expect(lines).toContain("turnbox_fleet_lease_held 0");
    expect(lines.filter((line) => line.startsWith("turnbox_fleet_waiting_creates "))).toEqual([]);
  });
});

describe("metered ports", () => {
  it("count and time operations by outcome, and change nothing else", async () => {
    const clock = createManualClock();
    const metrics = newMetrics();
    const ports = meterPorts({ metrics, clock, tracing: NO_TRACING });
    const control = ports.control(createFakeSandboxControl({ clock }));
    const { sandboxId } = await control.createSandbox(
      { idempotencyKey: "", labels: {}, template: "", resources: {}, lifetime: {}, env: {} },
      call,
    );
    expect((await control.getSandbox({ sandboxId }, call)).sandboxId).toBe(sandboxId);
    await expect(control.connectSandbox({ sandboxId: "zz" }, call)).rejects.toThrow();
    const ticking = ports.tick(() => clock.sleep(2000));
    await clock.advance(2000);
    await ticking;
    await expect(ports.placement(() => Promise.reject(new SandboxError("FLEET_EXHAUSTED", "full")))).rejects.toThrow(
      "full",
    );
    expect(await linesOf(metrics)).toEqual(
      expect.arrayContaining([
        'turnbox_fleet_sandbox_operations_total{operation="create",outcome="ok"} 1',
        'turnbox_fleet_sandbox_operations_total{operation="connect",outcome="SANDBOX_NOT_FOUND"} 1',
        'turnbox_fleet_control_loop_tick_duration_seconds_sum{outcome="ok"} 2',
        'turnbox_fleet_placement_duration_seconds_count{outcome="FLEET_EXHAUSTED"} 1',
      ]),
    );
  });
});

describe("watchSpans", () => {
  const end = new AbortController();
  afterEach(() => {
    end.abort();
  });

  it("times instances from their launch until they are ready, and drains until they have ended", async () => {
    const clock = createManualClock();
    const metrics = newMetrics();
    const fleet = createFakeFleet([instance("old", { state: "provisioning" })]);
    const launchedAtMs = clock.nowMs();
    const watching = watchSpans({ fleet, metrics, clock }, end);
    const tell = async (kind: Exclude<FleetChange["kind"], "overflow">, changes: Partial<FleetInstance>) => {
      fleet.tell({ kind, instance: instance("new", { launchedAtMs, ...changes }) });
      await clock.advance(10_000);
    };
    await clock.advance(0);
    fleet.tell({ kind: "changed", instance: instance("old") });
    await tell("changed", { state: "provisioning" });
    await tell("changed", { state: "provisioning", message: "boots" });
    await tell("changed", { state: "ready" });
    await tell("changed", { state: "draining", drainReason: "operator" });
    await tell("changed", { state: "draining", drainReason: "operator", sessionCount: 1 });
    await tell("removed", { state: "terminating" });
    expect(await linesOf(metrics)).toEqual(
      expect.arrayContaining([
        "turnbox_fleet_provision_duration_seconds_sum 20",
        "turnbox_fleet_provision_duration_seconds_count 1",
        'turnbox_fleet_drain_duration_seconds_sum{reason="operator"} 20',
        'turnbox_fleet_drain_duration_seconds_count{reason="operator"} 1',
      ]),
    );
    end.abort();
    await watching;
  });
});
