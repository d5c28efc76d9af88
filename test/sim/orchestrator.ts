import { createLog } from "@turnbox/core";
import { createFleet } from "../../packages/orchestrator/src/fleet/fleet.ts";
import type { InstanceRegistry } from "../../packages/orchestrator/src/fleet/registry/instance-registry.ts";
import type { HostConnection } from "../../packages/orchestrator/src/control/host-connection.ts";
import type { Provisioner } from "../../packages/orchestrator/src/provisioner/provisioner.ts";
import type { Store } from "../../packages/orchestrator/src/store/store.ts";
import type { Serving } from "./fleet-gate.ts";
import type { Parts } from "./parts.ts";
import type { Scenario } from "./scenario.ts";
import type { SimProcess } from "./sim-process.ts";

export interface OrchestratorOptions {
  readonly process: SimProcess;
  readonly scenario: Scenario;
  readonly parts: Parts;
  readonly fleetId: string;
  readonly store: Store;
  readonly provisioner: Provisioner;
  readonly connectHost: (url: string) => HostConnection;
  readonly newId: (kind: string) => string;
  /** Gets what the orchestrator logs; absent means that it logs nothing. */
  readonly onLog: ((line: string) => void) | undefined;
}

export interface SimOrchestrator extends Serving {
  readonly registry: InstanceRegistry;
  /** Looks at the fleet once, then serves and runs the loop until it dies. */
  run(onServing: () => void): Promise<void>;
}

const FIRST_LOOK_AGAIN_MS = 1000;

/** The product's fleet in one simulated process. */
export function createOrchestrator(options: OrchestratorOptions): SimOrchestrator {
  const { process, scenario, parts, newId } = options;
  const { clock } = process;
  const call = { signal: new AbortController().signal };
  const fleet = createFleet({
    fleetId: options.fleetId,
    holder: process.name,
    provisioner: parts.provisioner(options.provisioner),
    store: options.store,
    connectHost: (url) => parts.connection(options.connectHost(url)),
    policy: scenario.policy,
    phases: parts.phases,
    rules: { headroom: scenario.headroom, maxCandidates: 5 },
    times: {
      intervalMs: 15_000,
      reportTimeoutMs: 5000,
      createTimeoutMs: 120_000,
      actionTimeoutMs: 60_000,
      wakeTimeoutMs: 120_000,
      leaseTtlMs: 30_000,
      bootTimeMs: 45_000,
    },
    maxWaitingCreates: 30,
    maxActionsAtOnce: 16,
    newInstanceId: () => newId("i"),
    newSessionId: () => newId("s"),
    clock,
    logger: createLog({
      name: process.name,
      level: options.onLog === undefined ? "silent" : "info",
      to: { write: (line) => options.onLog?.(line) },
    }),
    shutdown: call.signal,
  });
  parts.spoil(fleet);
  return {
    process,
    control: fleet.control,
    operations: fleet.operations,
    registry: fleet.registry,
    run: async (onServing) => {
      for (;;) {
        const look = await fleet.registry.refresh(call).then(
          () => "done",
          () => "failed",
        );
        if (look === "done") break;
        await clock.sleep(FIRST_LOOK_AGAIN_MS, call);
      }
      onServing();
      await fleet.run(call);
    },
  };
}
