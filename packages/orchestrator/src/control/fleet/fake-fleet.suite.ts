import { createManualClock, type ManualClock } from "@turnbox/core/testing";
import { pino } from "pino";
import { createFakeProvisioner, type FakeProvisioner } from "../../instance/fake/fake-provisioner.ts";
import { createFakeStore } from "../../store/fake/fake-store.ts";
import type { Store } from "../../store/store.ts";
import { createFakeHost, type FakeHost } from "../fake/fake-host-connection.ts";
import type { FakeControlOptions } from "../fake/fake-sandbox-control.ts";
import type { SandboxControl } from "../sandbox-control.ts";
import { createFleetSandboxControl } from "./fleet-sandbox-control.ts";
import { fleetTags, InstanceRegistry } from "./instance-registry.ts";
import { Slots } from "./slots.ts";

/** A fleet over fake hosts, with everything a test may want to turn. */
export interface FakeFleet extends AsyncDisposable {
  readonly control: SandboxControl;
  readonly registry: InstanceRegistry;
  readonly provisioner: FakeProvisioner;
  readonly store: Store;
  readonly slots: Slots;
  readonly clock: ManualClock;
  /** The fake behind an instance; it stays the same over restarts. */
  host(instanceId: string): FakeHost;
  /** A further orchestrator over the same hosts and store, as after a restart. */
  restart(): Promise<SandboxControl>;
}

export interface FakeFleetOptions {
  readonly instances?: readonly string[];
  readonly hosts?: Readonly<Record<string, Partial<FakeControlOptions>>>;
}

const CALL = { signal: new AbortController().signal };
const FLEET_ID = "f1";

export async function createFakeFleet(options: FakeFleetOptions = {}): Promise<FakeFleet> {
  const clock = createManualClock();
  const store = createFakeStore();
  const provisioner = createFakeProvisioner({ clock });
  const hosts = new Map<string, FakeHost>();
  const host = (instanceId: string): FakeHost => {
    const known = hosts.get(instanceId);
    if (known !== undefined) return known;
    const made = createFakeHost({ clock, address: `${instanceId}.test:9100`, ...options.hosts?.[instanceId] });
    hosts.set(instanceId, made);
    return made;
  };
  const start = async () => {
    const slots = new Slots(clock);
    const registry = new InstanceRegistry({
      fleetId: FLEET_ID,
      provisioner,
      store,
      slots,
      connectHost: (url) => host(new URL(url).hostname.split(".")[0] ?? ""),
      reportTimeoutMs: 1000,
      clock,
      logger: pino({ level: "silent" }),
    });
    const control = createFleetSandboxControl({
      registry,
      store,
      slots,
      rules: { headroom: 0, maxCandidates: 5 },
      clock,
      logger: pino({ level: "silent" }),
      createTimeoutMs: 60_000,
      shutdown: CALL.signal,
    });
    await registry.refresh(CALL);
    return { slots, registry, control };
  };

  for (const instanceId of options.instances ?? ["i-1", "i-2"])
    await provisioner.launch({ instanceId, tags: fleetTags(FLEET_ID) }, CALL);
  const first = await start();
  return {
    ...first,
    provisioner,
    store,
    clock,
    host,
    restart: async () => (await start()).control,
    [Symbol.asyncDispose]: () => first.registry[Symbol.asyncDispose](),
  };
}
