import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { invalidArgument, parseKey } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import type { NetworkPolicy as WirePolicy } from "@turnbox/protocol/turnbox/host/v1/network_pb";
import {
  CreatePortAccessRequestSchema,
  type SessionService,
  UpdateNetworkPolicyRequestSchema,
} from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { assertEnforceable, DENY_ALL, type NetworkPolicy, parsePolicy } from "../network-policy/policy.ts";
import { canonicalRequest } from "./canonical.ts";
import type { Host } from "./host.ts";
import { signalOf } from "./signal.ts";
import { parseTtl } from "./ttl.ts";

type Service = ServiceImpl<typeof SessionService>;

/** The policy of a request that this host can put in force; null where none is given. */
export function readPolicy(
  host: Host,
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
export function getNetworkPolicy(host: Host): Service["getNetworkPolicy"] {
  return async (request, context) => {
    const { row } = host.registry.get(request.sessionId, principalOf(context));
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

export function updateNetworkPolicy(host: Host): Service["updateNetworkPolicy"] {
  return async (request, context) => {
    const session = host.registry.get(request.sessionId, principalOf(context));
    const policy = readPolicy(host, request.policy, "policy");
    if (policy === null) throw invalidArgument("policy", "is required");
    host.activity.touch(session);
    await host.updateNetworkPolicy(
      session,
      {
        idempotencyKey: parseKey("idempotency_key", request.idempotencyKey),
        payload: canonicalRequest(UpdateNetworkPolicyRequestSchema, { ...request, idempotencyKey: "" }),
        expectedGeneration: request.expectedGeneration,
        policy,
      },
      { signal: signalOf(host, request.idempotencyKey, context) },
    );
    return { policy: toWirePolicy(session.row.networkPolicy ?? DENY_ALL) };
  };
}

export function createPortAccess(host: Host): Service["createPortAccess"] {
  return async (request, context) => {
    const session = host.registry.get(request.sessionId, principalOf(context));
    host.activity.touch(session);
    const access = await host.ports.createAccess(session, {
      idempotencyKey: parseKey("idempotency_key", request.idempotencyKey),
      payload: canonicalRequest(CreatePortAccessRequestSchema, { ...request, idempotencyKey: "" }),
      expectedGeneration: request.expectedGeneration,
      port: request.port,
      ttlMs: parseTtl("ttl", request.ttl),
    });
    const { url, token, expiresAtMs } = access;
    return { url, token, ...(expiresAtMs === null ? {} : { expiresAt: timestampFromMs(expiresAtMs) }) };
  };
}
