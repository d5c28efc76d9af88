import { newSessionId } from "@turnbox/core";
import { createManualClock, type ManualClock } from "@turnbox/core/testing";
import { pino } from "pino";
import {
  createFakeProvisioner,
  type FakeProvisioner,
  type FakeProvisionerOptions,
} from "../provisioner/fake/fake-provisioner.ts";
import { createFakeStore } from "../store/fake/fake-store.ts";
import type { Store } from "../store/store.ts";
import { createFakeHost, type FakeHost } from "../control/fake/fake-host-connection.ts";
import type { FakeControlOptions } from "../control/fake/fake-sandbox-control.ts";
import type { SandboxControl } from "../control/sandbox-control.ts";
import { createFleet, type Fleet, type FleetOptions } from "./fleet.ts";
import { fleetTags } from "./registry/fleet-tags.ts";
import type { FleetPolicy } from "./loop/phase.ts";
import { PHASES } from "./loop/phase-table.ts";

/** A fleet over fake hosts, with everything a test may want to turn. Nothing of it runs by itself. */
export interface FakeFleet extends Fleet {
  readonly provisioner: FakeProvisioner;
  readonly store: Store;
  readonly clock: ManualClock;
  /** The fake behind an instance; it stays the same over restarts. */
  host(instanceId: string): FakeHost;
  /** One look of the control loop, and all that it sets going. */
  tick(): Promise<void>;
  /** A further orchestrator over the same hosts and store, as after a restart. */
  restart(): Promise<SandboxControl>;
  /** A further orchestrator at the same time. */
  replica(holder: string): Promise<Fleet>;
}

export interface FakeFleetOptions extends Partial<Pick<FleetOptions, "maxWaitingCreates" | "archives">> {
  readonly instances?: readonly string[];
  readonly hosts?: Readonly<Record<string, Partial<FakeControlOptions>>>;
  readonly policy?: Partial<FleetPolicy>;
  readonly provisioner?: Partial<FakeProvisionerOptions>;
  /** Goes around the store that the orchestrators use. */
  readonly aroundStore?: (store: Store) => Store;
}

const CALL = { signal: new AbortController().signal };
const FLEET_ID = "f1";

export const TEST_POLICY: FleetPolicy = {
  minInstances: 0,
  maxInstances: 0,
  warmPoolTarget: 0,
  idleCooldownMs: 600_000,
  provisionTimeoutMs: 300_000,
  drainTimeoutMs: 1_800_000,
  maxConcurrentProvisions: 3,
  healthyThreshold: 3,
  unhealthyThreshold: 3,
  maxTerminateRetries: 5,
};

const TIMES = {
  intervalMs: 5000,
  reportTimeoutMs: 1000,
  createTimeoutMs: 60_000,
  actionTimeoutMs: 60_000,
  wakeTimeoutMs: 120_000,
  leaseTtlMs: 15_000,
  bootTimeMs: 30_000,
};

export async function createFakeFleet(options: FakeFleetOptions = {}): Promise<FakeFleet> {
  const { instances = ["i-1", "i-2"] } = options;
  const clock = createManualClock();
  const store = createFakeStore({ clock });
  const usedStore = options.aroundStore?.(store) ?? store;
  const provisioner = createFakeProvisioner({ clock, ...options.provisioner });
  const hosts = new Map<string, FakeHost>();
  const host = (instanceId: string): FakeHost => {
    const known = hosts.get(instanceId);
    if (known !== undefined) return known;
    const made = createFakeHost({ clock, address: `${instanceId}.test:9100`, ...options.hosts?.[instanceId] });
    hosts.set(instanceId, made);
    return made;
  };
  let launched = 0;
  const start = async (holder: string): Promise<Fleet> => {
    const fleet = createFleet({
      fleetId: FLEET_ID,
      holder,
      provisioner,
      store: usedStore,
      connectHost: (url) => host(new URL(url).hostname.split(".")[0] ?? ""),
      policy: { ...TEST_POLICY, maxInstances: instances.length, ...options.policy },
      phases: PHASES,
      rules: { headroom: 0, maxCandidates: 5 },
      times: TIMES,
      maxWaitingCreates: options.maxWaitingCreates ?? 256,
      maxActionsAtOnce: 16,
      ...(options.archives && { archives: options.archives }),
      newInstanceId: () => {
        launched += 1;
        return `new-${String(launched)}`;
      },
      newSessionId,
      clock,
      logger: pino({ level: "silent" }),
      shutdown: CALL.signal,
    });
    await fleet.registry.refresh(CALL);
    return fleet;
  };

  if (provisioner.capabilities.launch === "supported") {
    for (const instanceId of instances) await provisioner.launch({ instanceId, tags: fleetTags(FLEET_ID) }, CALL);
  }
  const first = await start("o-1");
  return {
    ...first,
    provisioner,
    store,
    clock,
    host,
    tick: async () => {
      await first.loop.tick(CALL);
      await first.executor.idle();
    },
    restart: async () => (await start("o-2")).control,
    replica: start,
    [Symbol.asyncDispose]: () => first[Symbol.asyncDispose](),
  };
}
