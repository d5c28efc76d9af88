import type { ServiceImpl } from "@connectrpc/connect";
import { invalidArgument } from "@turnbox/core";
import type { FleetService } from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import type { FleetView } from "../instance/fleet-view.ts";
import { toWireInstance } from "./convert.ts";
import { parsePage } from "./validate.ts";

export interface FleetServiceOptions {
  readonly fleet: FleetView;
  readonly version: string;
}

/** FleetService: what is known about the instances. Methods that are not here answer `unimplemented`. */
export function createFleetService({ fleet, version }: FleetServiceOptions): Partial<ServiceImpl<typeof FleetService>> {
  return {
    getFleetStatus: () => {
      const instances: Record<string, number> = {};
      let sessionCount = 0;
      for (const instance of fleet.instances()) {
        instances[instance.state] = (instances[instance.state] ?? 0) + 1;
        sessionCount += instance.sessionCount;
      }
      return { fleetId: fleet.fleetId, instances, sessionCount, waitingCreates: 0, version };
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
  };
}

const TOKEN_PREFIX = "instances:";

const formatToken = (instanceId: string): string => Buffer.from(`${TOKEN_PREFIX}${instanceId}`).toString("base64url");

function parseToken(token: string): string {
  const text = Buffer.from(token, "base64url").toString("utf8");
  if (!text.startsWith(TOKEN_PREFIX)) throw invalidArgument("page.page_token", "must be the token of the page before");
  return text.slice(TOKEN_PREFIX.length);
}
