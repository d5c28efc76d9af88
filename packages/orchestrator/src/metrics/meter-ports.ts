import { aroundMethods, type Clock } from "@turnbox/core";
import { measure } from "@turnbox/rpc/metrics";
import type { Tracing } from "@turnbox/rpc/trace";
import type { FleetMeter } from "../fleet/fleet-meter.ts";
import type { HostConnection } from "../control/host-connection.ts";
import type { SandboxControl } from "../control/sandbox-control.ts";
import type { Provisioner } from "../provisioner/provisioner.ts";
import type { Store } from "../store/store.ts";
import type { FleetMetrics } from "./fleet-metrics.ts";

/** Ports that count, time and trace what goes through them; the adapters do not know. */
export interface MeteredPorts extends FleetMeter {
  store(store: Store): Store;
  provisioner(provisioner: Provisioner): Provisioner;
  control(control: SandboxControl): SandboxControl;
  connection(connection: HostConnection): HostConnection;
}

const STORE = [
  "acquireLease",
  "releaseLease",
  "putDemand",
  "waitingCreates",
  "putInstance",
  "listInstances",
  "deleteInstance",
  "beginCreate",
  "placeSandbox",
  "finishCreate",
  "withdrawSandbox",
  "getSandbox",
  "findSandboxes",
  "getSandboxes",
  "listSandboxes",
  "deleteSandbox",
  "beginIdempotent",
  "finishIdempotent",
  "abandonIdempotent",
  "expireIdempotent",
] as const satisfies readonly (keyof Store)[];

const MACHINE = [
  "launch",
  "list",
  "describe",
  "terminate",
  "stop",
  "start",
] as const satisfies readonly (keyof Provisioner)[];

const SANDBOX = {
  createSandbox: "create",
  destroySandbox: "destroy",
  pauseSandbox: "pause",
  resumeSandbox: "resume",
  forkSandbox: "fork",
  connectSandbox: "connect",
} as const satisfies Partial<Record<keyof SandboxControl, string>>;

export interface MeterPortsOptions {
  readonly metrics: FleetMetrics;
  readonly tracing: Tracing;
  readonly clock: Clock;
}

export function meterPorts({ metrics, tracing, clock }: MeterPortsOptions): MeteredPorts {
  const inStore = tracing.around("store");
  const inMachines = tracing.around("machine");
  const inFleet = tracing.around("fleet");
  return {
    store: (store) =>
      aroundMethods(store, STORE, (operation, work) =>
        measure(
          clock,
          () => inStore(operation, work),
          ({ outcome, seconds }) => {
            metrics.add("storeOperations", { operation, outcome });
            metrics.observe("storeSeconds", { operation }, seconds);
          },
        ),
      ),
    provisioner: (provisioner) =>
      aroundMethods(provisioner, MACHINE, (operation, work) =>
        measure(
          clock,
          () => inMachines(operation, work),
          ({ outcome, seconds }) => {
            metrics.add("machineOperations", { operation, outcome });
            metrics.observe("machineSeconds", { operation }, seconds);
          },
        ),
      ),
    control: (control) =>
      aroundMethods(control, Object.keys(SANDBOX) as (keyof typeof SANDBOX)[], (method, work) => {
        const operation = SANDBOX[method as keyof typeof SANDBOX];
        return measure(clock, work, ({ outcome, seconds }) => {
          metrics.add("sandboxOperations", { operation, outcome });
          metrics.observe("sandboxSeconds", { operation }, seconds);
        });
      }),
    connection: (connection) =>
      aroundMethods(connection, ["report"], (_, work) =>
        measure(clock, work, ({ outcome, seconds }) => {
          metrics.observe("healthSeconds", { outcome }, seconds);
        }),
      ),
    placement: (work) =>
      measureFound(
        clock,
        () => inFleet("placement", work),
        ({ outcome, seconds }) => {
          metrics.observe("placementSeconds", { outcome }, seconds);
        },
      ),
    tick: (work) =>
      measure(clock, work, ({ outcome, seconds }) => {
        metrics.observe("tickSeconds", { outcome }, seconds);
      }),
  };
}

/** Measures a search; one that finds nothing is not reported. */
async function measureFound<T>(
  clock: Clock,
  search: () => Promise<T>,
  report: Parameters<typeof measure>[2],
): Promise<T> {
  let found: T | undefined;
  return await measure(
    clock,
    async () => (found = await search()),
    (measured) => {
      if (measured.outcome !== "ok" || found !== undefined) report(measured);
    },
  );
}
