import type { FleetInstance, FleetView, InstanceState } from "../fleet/fleet-view.ts";
import type { FleetMetrics } from "./fleet-metrics.ts";

export interface FleetGauges {
  readonly fleet: Pick<FleetView, "instances">;
  readonly waitingCreates: (call: { readonly signal: AbortSignal }) => Promise<number>;
  /** The epoch of the lease that this replica holds; undefined if it holds none. */
  readonly epoch: () => number | undefined;
}

const STATES = [
  "provisioning",
  "ready",
  "active",
  "draining",
  "stopped",
  "terminating",
] as const satisfies readonly InstanceState[];
const HEALTH = ["healthy", "degraded", "unhealthy", "unknown"] as const satisfies readonly FleetInstance["health"][];

const plain = (value: number) => [{ labels: {}, value }];

/** Lets each scrape read how the fleet is. Nothing is asked for between scrapes. */
export function registerFleetGauges(metrics: FleetMetrics, { fleet, waitingCreates, epoch }: FleetGauges): void {
  const count = (holds: (instance: FleetInstance) => boolean): number => fleet.instances().filter(holds).length;
  metrics.collect("instances", () =>
    STATES.map((state) => ({ labels: { state }, value: count((instance) => instance.state === state) })),
  );
  metrics.collect("instanceHealth", () =>
    HEALTH.map((health) => ({ labels: { health }, value: count((instance) => instance.health === health) })),
  );
  metrics.collect("warmInstances", () => plain(count(({ state, cordoned }) => state === "ready" && !cordoned)));
  metrics.collect("cordonedInstances", () => plain(count(({ cordoned }) => cordoned)));
  metrics.collect("sandboxes", () => plain(fleet.instances().reduce((sum, { sessionCount }) => sum + sessionCount, 0)));
  metrics.collect("waitingCreates", async (call) => plain(await waitingCreates(call)));
  metrics.collect("leaseHeld", () => plain(epoch() === undefined ? 0 : 1));
  metrics.collect("leaseEpoch", () => plain(epoch() ?? 0));
}
