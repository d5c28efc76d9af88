import { createLog } from "@turnbox/core";
import { fleetTags } from "../../packages/orchestrator/src/fleet/registry/fleet-tags.ts";
import { InstanceRegistry } from "../../packages/orchestrator/src/fleet/registry/instance-registry.ts";
import { findPlacement } from "../../packages/orchestrator/src/fleet/placement/placement.ts";
import { Slots } from "../../packages/orchestrator/src/fleet/placement/slots.ts";
import type { HostConnection, HostReport } from "../../packages/orchestrator/src/control/host-connection.ts";
import type { Machine, Provisioner } from "../../packages/orchestrator/src/provisioner/provisioner.ts";
import { createFakeStore } from "../../packages/orchestrator/src/store/fake/fake-store.ts";
import { createRandom } from "../support/random.ts";
import { EPOCH_MS, SimProcess } from "./sim-process.ts";
import { Timeline } from "./timeline.ts";

export interface PlacementScale {
  readonly instances: number;
  readonly sandboxesPerInstance: number;
  readonly creates: number;
}

export interface PlacementTimes {
  readonly medianMs: number;
  readonly p99Ms: number;
  /** On how many instances the creates were placed. */
  readonly spread: number;
}

const FLEET_ID = "large";
const CALL = { signal: new AbortController().signal };
const NOTHING = { cpus: 0, memoryBytes: 0, diskBytes: 0 };

/** How long it takes to decide where a create goes, and to take the place, in the registry of a large fleet. */
export async function measurePlacement(scale: PlacementScale): Promise<PlacementTimes> {
  const { clock } = new SimProcess({ name: "large", timeline: new Timeline(), wallSkewMs: 0 });
  const slots = new Slots(clock);
  await using registry = new InstanceRegistry({
    fleetId: FLEET_ID,
    provisioner: createListedMachines(scale.instances),
    store: createFakeStore({ clock }),
    slots,
    connectHost: createReporter(scale.sandboxesPerInstance),
    reportTimeoutMs: 5000,
    clock,
    logger: createLog({ name: "large", level: "silent", to: { write: () => undefined } }),
  });
  await registry.refresh(CALL);

  const timesMs: number[] = [];
  const used = new Set<string>();
  for (let create = 0; create < scale.creates; create += 1) {
    const startedMs = performance.now();
    const request = { ...NOTHING, cpus: 1, memoryBytes: 1e9, template: "base" };
    const placement = findPlacement(request, registry.placementView(), { headroom: 0.1, maxCandidates: 5 });
    if (placement.kind === "refused") throw new Error(placement.message);
    slots.claim(placement.candidates[0], { ...NOTHING, cpus: 1, memoryBytes: 1e9 }).keep();
    timesMs.push(performance.now() - startedMs);
    used.add(placement.candidates[0]);
  }
  timesMs.sort((a, b) => a - b);
  const at = (share: number): number => timesMs[Math.floor(timesMs.length * share)] ?? 0;
  return { medianMs: at(0.5), p99Ms: at(0.99), spread: used.size };
}

function createListedMachines(count: number): Provisioner {
  const machines = Array.from(
    { length: count },
    (_, index): Machine => ({
      instanceId: `i-${String(index).padStart(6, "0")}`,
      state: "running",
      url: `http://i-${String(index)}.test:9100`,
      tags: fleetTags(FLEET_ID),
      launchedAtMs: EPOCH_MS,
      problem: undefined,
      image: "",
      interruption: undefined,
    }),
  );
  const unused = (): Promise<never> => Promise.reject(new Error("only lists are asked for"));
  return {
    kind: "listed",
    capabilities: { launch: "unsupported", stopStart: "unsupported" },
    image: "",
    list: ({ states }) => Promise.resolve(states.length === 0 ? machines : []),
    launch: unused,
    describe: unused,
    terminate: unused,
    stop: unused,
    start: unused,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** Lines to hosts of which nothing is asked but how they are. */
function createReporter(sandboxesPerInstance: number): (url: string) => HostConnection {
  const random = createRandom(1);
  const template = { name: "base", digest: "d1", createdAtMs: 0, sizeBytes: 1, latest: true };
  return () => {
    const report: HostReport = {
      health: "healthy",
      sessionCount: Math.round(sandboxesPerInstance * (0.5 + random())),
      maxSessions: sandboxesPerInstance * 2,
      cpus: 64,
      memoryBytes: 512e9,
      memoryAvailableBytes: 512e9 * (0.3 + 0.5 * random()),
      poolBytes: 4e12,
      poolAvailableBytes: 4e12 * (0.3 + 0.5 * random()),
      admission: "open",
      templates: [template],
      problems: [],
    };
    return {
      report: () => Promise.resolve(report),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    } as unknown as HostConnection;
  };
}
