import type { ServiceImpl } from "@connectrpc/connect";
import { type Clock, invalidArgument } from "@turnbox/core";
import { closingSignalOf } from "@turnbox/rpc/server";
import type { FleetService } from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import type { FleetOperations, FleetView } from "../fleet/fleet-view.ts";
import { fromDrainRequest, fromInstanceRequest, fromRefreshRequest, toWireInstance } from "./convert-fleet.ts";
import { parsePage } from "./validate.ts";
import { watchFleet } from "./watch-fleet.ts";

export interface FleetServiceOptions {
  readonly fleet: FleetView;
  readonly operations: FleetOperations;
  /** Creates that wait for room, in all replicas. */
  readonly waitingCreates: (call: { readonly signal: AbortSignal }) => Promise<number>;
  readonly clock: Clock;
  readonly version: string;
}

/** FleetService: parse, ask the fleet, convert. */
export function createFleetService(options: FleetServiceOptions): ServiceImpl<typeof FleetService> {
  const { fleet, operations, version } = options;
  return {
    getFleetStatus: async (_request, { signal }) => {
      const instances: Record<string, number> = {};
      let sessionCount = 0;
      for (const instance of fleet.instances()) {
        instances[instance.state] = (instances[instance.state] ?? 0) + 1;
        sessionCount += instance.sessionCount;
      }
      const waitingCreates = await options.waitingCreates({ signal });
      return { fleetId: fleet.fleetId, instances, sessionCount, waitingCreates, version };
    },
    listInstances: ({ page }) => {
      const { pageSize, pageToken } = parsePage(page);
      const after = pageToken === "" ? "" : parseToken(pageToken);
      const rest = fleet.instances().filter((instance) => instance.instanceId > after);
      const shown = rest.slice(0, pageSize);
      const last = shown.at(-1);
      const nextPageToken = rest.length > shown.length && last !== undefined ? formatToken(last.instanceId) : "";
      return { instances: shown.map(toWireInstance), page: { nextPageToken } };
    },
    cordonInstance: async (request, { signal }) => ({
      instance: toWireInstance(await operations.cordon(fromInstanceRequest(request), { signal })),
    }),
    uncordonInstance: async (request, { signal }) => ({
      instance: toWireInstance(await operations.uncordon(fromInstanceRequest(request), { signal })),
    }),
    drainInstance: async (request, { signal }) => ({
      instance: toWireInstance(await operations.drain(fromDrainRequest(request), { signal })),
    }),
    refreshInstances: async (request, { signal }) => {
      const { replacing, skipped } = await operations.refresh(fromRefreshRequest(request), { signal });
      return { replacing: [...replacing], skipped: [...skipped] };
    },
    watchFleet: (_request, context) =>
      watchFleet(options, { signal: AbortSignal.any([context.signal, closingSignalOf(context)]) }),
  };
}

const TOKEN_PREFIX = "instances:";

const formatToken = (instanceId: string): string => Buffer.from(`${TOKEN_PREFIX}${instanceId}`).toString("base64url");

function parseToken(token: string): string {
  const text = Buffer.from(token, "base64url").toString("utf8");
  if (!text.startsWith(TOKEN_PREFIX)) throw invalidArgument("page.page_token", "must be the token of the page before");
  return text.slice(TOKEN_PREFIX.length);
}
