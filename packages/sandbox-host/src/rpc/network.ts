import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { invalidArgument } from "@turnbox/core";
import type { NetworkPolicy as WirePolicy } from "@turnbox/protocol/turnbox/host/v1/network_pb";
import {
  CreatePortAccessRequestSchema,
  type SessionService,
  UpdateNetworkPolicyRequestSchema,
} from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { UpdateNetworkPolicy } from "../lifecycle/update-network-policy.ts";
import { assertEnforceable, DENY_ALL, type NetworkPolicy, parsePolicy } from "../network-policy/policy.ts";
import type { Network } from "../network/network.ts";
import type { Ports } from "../port-access/ports.ts";
import { findSession, signalOf, type Stops, type UsesSessions, useSession } from "./call.ts";
import { parseTtl } from "./duration.ts";
import { keyedRequest } from "./keyed-request.ts";

/** What methods need that take a policy. */
export interface EnforcesPolicies {
  readonly network: Pick<Network, "bounds" | "support">;
}

/** What the methods need that are about the network of a session. */
export interface NetworkParts extends Stops, UsesSessions {
  readonly network: Pick<Network, "bounds" | "denials" | "support">;
  readonly updateNetworkPolicy: UpdateNetworkPolicy;
  readonly ports: Pick<Ports, "createAccess">;
}

type Service = ServiceImpl<typeof SessionService>;

/** The policy of a request that this host can put in force; null if none is given. */
export function readPolicy(
  host: EnforcesPolicies,
  wire: WirePolicy | undefined,
  field: "network_policy" | "policy" = "network_policy",
): NetworkPolicy | null {
  if (wire === undefined) return null;
  const { bounds } = host.network;
  const { allowPublicIngress, allowOutbound, allowList, denyList, required } = wire;
  const policy = parsePolicy({ allowPublicIngress, allowOutbound, allowList, denyList, required }, { field, bounds });
  assertEnforceable(policy, host.network.support);
  return policy;
}

function toWirePolicy({ allowList, denyList, ...flags }: NetworkPolicy) {
  return { ...flags, allowList: [...allowList], denyList: [...denyList] };
}

/** GetNetworkPolicy: the policy, what the host closes whatever it says, and what was refused. */
export function getNetworkPolicy(host: NetworkParts): Service["getNetworkPolicy"] {
  return async (request, context) => {
    const { row } = findSession(host, request.sessionId, context);
    const denials = row.container === null ? [] : await host.network.denials(row.container, { signal: context.signal });
    const { bounds } = host.network;
    const policy = row.networkPolicy ?? DENY_ALL;
    return {
      policy: toWirePolicy(policy),
      closedRanges: bounds.shutRanges().map(({ range, setting }) => ({ range, setting: setting ?? "" })),
      ineffectiveEntries: policy.allowList.filter((entry) => bounds.isShut(entry)),
      denials: denials.map(({ atMs, destination, rule }) => ({ at: timestampFromMs(atMs), destination, rule })),
    };
  };
}

export function updateNetworkPolicy(host: NetworkParts): Service["updateNetworkPolicy"] {
  return async (request, context) => {
    const session = findSession(host, request.sessionId, context);
    const policy = readPolicy(host, request.policy, "policy");
    if (policy === null) throw invalidArgument("policy", "is required");
    host.activity.touch(session);
    await host.updateNetworkPolicy(
      session,
      {
        ...keyedRequest(UpdateNetworkPolicyRequestSchema, request),
        expectedGeneration: request.expectedGeneration,
        policy,
      },
      { signal: signalOf(host, request.idempotencyKey, context) },
    );
    return { policy: toWirePolicy(session.row.networkPolicy ?? DENY_ALL) };
  };
}

export function createPortAccess(host: NetworkParts): Service["createPortAccess"] {
  return async (request, context) => {
    const session = useSession(host, request.sessionId, context);
    const access = await host.ports.createAccess(session, {
      ...keyedRequest(CreatePortAccessRequestSchema, request),
      expectedGeneration: request.expectedGeneration,
      port: request.port,
      ttlMs: parseTtl("ttl", request.ttl),
    });
    const { url, token, expiresAtMs } = access;
    return { url, token, ...(expiresAtMs === null ? {} : { expiresAt: timestampFromMs(expiresAtMs) }) };
  };
}
