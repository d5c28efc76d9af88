import { randomUUID } from "node:crypto";
import type { CallOptions } from "../call.ts";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import { toDateOrEpoch } from "../wire/time.ts";
import { toPolicy, toWirePolicy } from "./network-policy.ts";
import type { SandboxNetwork } from "./sandbox-network.ts";

export function createNetwork(calls: HostCalls): SandboxNetwork {
  const { sessionId } = calls;
  const look = (options: CallOptions | undefined) =>
    calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.read }, ({ host }, { signal }) =>
      host.sessions.getNetworkPolicy({ sessionId }, { signal }),
    );
  return {
    policy: async (options) => toPolicy((await look(options)).policy),
    denials: async (options) =>
      (await look(options)).denials.map(({ at, destination, rule }) => ({ at: toDateOrEpoch(at), destination, rule })),
    update: async (wanted, options = {}) => {
      const { idempotencyKey = randomUUID() } = options;
      const request = { idempotencyKey, sessionId, policy: toWirePolicy(wanted) };
      const { policy } = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.change }, ({ host }, { signal }) =>
        host.sessions.updateNetworkPolicy(request, { signal }),
      );
      return toPolicy(policy);
    },
  };
}
