import { randomUUID } from "node:crypto";
import { DrainSessions } from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import type { CallOptions, KeyedOptions } from "../sandbox/call.ts";
import { DEFAULT_TIMEOUT_MS } from "../sandbox/link/default-timeouts.ts";
import type { ServerLink } from "../sandbox/link/server-link.ts";
import { toWireDuration } from "../sandbox/wire/time.ts";
import type { Fleet } from "./fleet-types.ts";
import { createHostReports } from "./host-reports.ts";
import { listInstances } from "./list-instances.ts";
import type { OperatorHosts } from "./operator-hosts.ts";
import { toInstance } from "./to-instance.ts";
import { createFleetWatch } from "./watch-fleet.ts";

const SESSIONS = { keep: DrainSessions.KEEP, discard: DrainSessions.DISCARD } as const;

export function createFleet(server: ServerLink, hosts: OperatorHosts): Fleet {
  const read = (options: CallOptions | undefined) => ({ timeoutMs: DEFAULT_TIMEOUT_MS.read, ...options });
  const change = (options: CallOptions | undefined) => ({ timeoutMs: DEFAULT_TIMEOUT_MS.change, ...options });
  const keyOf = ({ idempotencyKey = randomUUID() }: KeyedOptions): string => idempotencyKey;
  return {
    status: async (options) => {
      const status = await server.call((to, { signal }) => to.fleet.getFleetStatus({}, { signal }), read(options));
      const { fleetId, version, instances, sessionCount, waitingCreates } = status;
      return { fleetId, version, instances: { ...instances }, sandboxCount: sessionCount, waitingCreates };
    },
    instances: (options) => server.call(listInstances, read(options)),
    cordon: async (instanceId, options = {}) => {
      const request = { idempotencyKey: keyOf(options), instanceId };
      const { instance } = await server.call(
        (to, { signal }) => to.fleet.cordonInstance(request, { signal }),
        change(options),
      );
      return toInstance(instance);
    },
    uncordon: async (instanceId, options = {}) => {
      const request = { idempotencyKey: keyOf(options), instanceId };
      const { instance } = await server.call(
        (to, { signal }) => to.fleet.uncordonInstance(request, { signal }),
        change(options),
      );
      return toInstance(instance);
    },
    drain: async (instanceId, options = {}) => {
      const { graceMs, sandboxes = "keep" } = options;
      const timeout = graceMs === undefined ? {} : { timeout: toWireDuration("graceMs", graceMs) };
      const request = { idempotencyKey: keyOf(options), instanceId, sessions: SESSIONS[sandboxes], ...timeout };
      const { instance } = await server.call(
        (to, { signal }) => to.fleet.drainInstance(request, { signal }),
        change(options),
      );
      return toInstance(instance);
    },
    refresh: async (options = {}) => {
      const request = { idempotencyKey: keyOf(options), image: options.image ?? "" };
      const { replacing, skipped } = await server.call(
        (to, { signal }) => to.fleet.refreshInstances(request, { signal }),
        change(options),
      );
      return { replacing, skipped };
    },
    watch: createFleetWatch(server),
    hosts: createHostReports(hosts),
  };
}
