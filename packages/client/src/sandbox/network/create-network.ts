import { randomUUID } from "node:crypto";
import type { CallOptions } from "../call.ts";
import { createHostCalls, type HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import type { SandboxLink } from "../link/sandbox-link.ts";
import { toDateOrEpoch } from "../wire/time.ts";
import { toPolicy, toWirePolicy } from "./network-policy.ts";
import type { SandboxNetwork } from "./sandbox-network.ts";

/** How the policy is changed: by a token that is asked for when it is needed, since the one of the handle does not allow it. */
export interface NetworkOwner {
  readonly open: () => SandboxLink;
  /** Aborted when the handle is closed. */
  readonly signal: AbortSignal;
}

export function createNetwork(calls: HostCalls, owner: NetworkOwner): SandboxNetwork {
  const { sessionId } = calls;
  const look = (options: CallOptions | undefined) =>
    calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.read }, ({ host }, { signal }) =>
      host.sessions.getNetworkPolicy({ sessionId }, { signal }),
    );
  const report: SandboxNetwork["report"] = async (options) => {
    const { policy, ineffectiveEntries, denials } = await look(options);
    return {
      policy: toPolicy(policy),
      ineffectiveEntries,
      denials: denials.map(({ at, destination, rule }) => ({ at: toDateOrEpoch(at), destination, rule })),
    };
  };
  return {
    report,
    policy: async (options) => (await report(options)).policy,
    denials: async (options) => (await report(options)).denials,
    update: async (wanted, options = {}) => {
      const { idempotencyKey = randomUUID() } = options;
      const request = { idempotencyKey, sessionId, policy: toWirePolicy(wanted) };
      using link = owner.open();
      const signals = [owner.signal, ...(options.signal === undefined ? [] : [options.signal])];
      const { policy } = await createHostCalls(link, calls).call(
        { options: { ...options, signal: AbortSignal.any(signals) }, timeoutMs: DEFAULT_TIMEOUT_MS.change },
        ({ host }, { signal }) => host.sessions.updateNetworkPolicy(request, { signal }),
      );
      return toPolicy(policy);
    },
  };
}
