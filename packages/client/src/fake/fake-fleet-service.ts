import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type DrainInstanceRequest,
  DrainReason,
  FleetEventKind,
  type FleetService,
  type Instance,
  InstanceSchema,
  InstanceState,
  type WatchFleetResponseSchema,
} from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import { NOW_MS } from "./connect-services.ts";

export type FleetAnswer = MessageInitShape<typeof WatchFleetResponseSchema>;

/** The fleet in memory: what it has, what it was asked for, what it says to watchers, after what exists. */
export interface FleetWorld {
  hostUrls: string[];
  /** Made of `hostUrls` unless given. */
  instances: Instance[] | undefined;
  cordons: string[];
  drains: DrainInstanceRequest[];
  images: string[];
  fleetEvents: (signal: AbortSignal) => AsyncIterable<FleetAnswer>;
}

export const newFleetWorld = (hostUrls: readonly string[]): FleetWorld => ({
  hostUrls: [...hostUrls],
  instances: undefined,
  cordons: [],
  drains: [],
  images: [],
  // Nothing happens until the reader goes.
  async *fleetEvents(signal) {
    await new Promise((resolve) => {
      signal.addEventListener("abort", resolve, { once: true });
    });
    yield* [];
  },
});

export const fleetInstance = (instanceId: string, changes: MessageInitShape<typeof InstanceSchema> = {}): Instance =>
  create(InstanceSchema, {
    instanceId,
    state: InstanceState.ACTIVE,
    health: "healthy",
    url: `http://${instanceId}:9000`,
    sessionCount: 3,
    maxSessions: 50,
    poolAvailableBytes: 2n << 30n,
    launchedAt: timestampFromMs(NOW_MS - 120_000),
    image: "img-1",
    ...changes,
  });

export function createFakeFleetService(world: FleetWorld): Partial<ServiceImpl<typeof FleetService>> {
  const instances = (): Instance[] =>
    world.instances ??
    world.hostUrls.map((url, index) => create(InstanceSchema, { instanceId: `i${String(index)}`, url }));
  const find = (instanceId: string): Instance => {
    const found = instances().find((one) => one.instanceId === instanceId);
    if (found === undefined) throw new Error(`no instance ${instanceId} in this test`);
    return found;
  };
  return {
    getFleetStatus: () => ({
      fleetId: "f1",
      version: "1.2.3",
      instances: { active: 2, draining: 1 },
      sessionCount: 9,
      waitingCreates: 4,
    }),
    // One instance on each page, so that paging is walked.
    listInstances: ({ page }) => {
      const index = Number(page?.pageToken ?? "") || 0;
      const next = index + 1 < instances().length ? String(index + 1) : "";
      return { instances: instances().slice(index, index + 1), page: { nextPageToken: next } };
    },
    cordonInstance: ({ instanceId }) => {
      world.cordons.push(`+${instanceId}`);
      return { instance: { ...find(instanceId), cordoned: true } };
    },
    uncordonInstance: ({ instanceId }) => {
      world.cordons.push(`-${instanceId}`);
      return { instance: find(instanceId) };
    },
    drainInstance: (request) => {
      world.drains.push(request);
      const draining = { state: InstanceState.DRAINING, drainReason: DrainReason.OPERATOR, cordoned: true };
      return { instance: { ...find(request.instanceId), ...draining } };
    },
    refreshInstances: ({ image }) => {
      world.images.push(image);
      return { replacing: ["i-aa", "i-ab"], skipped: ["i-b"] };
    },
    async *watchFleet(_request, { signal }) {
      for (const instance of instances()) yield { kind: FleetEventKind.EXISTING, instance };
      yield* world.fleetEvents(signal);
    },
  };
}
