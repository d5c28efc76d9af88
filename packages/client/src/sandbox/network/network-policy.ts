import { create } from "@bufbuild/protobuf";
import { type NetworkPolicy, NetworkPolicySchema } from "@turnbox/protocol/turnbox/host/v1/network_pb";
import type { SandboxNetworkPolicy } from "./sandbox-network.ts";

export const toWirePolicy = (policy: SandboxNetworkPolicy) => ({
  allowPublicIngress: policy.allowPublicIngress ?? false,
  allowOutbound: policy.allowOutbound ?? false,
  allowList: [...(policy.allowList ?? [])],
  denyList: [...(policy.denyList ?? [])],
  required: policy.required ?? false,
});

export function toPolicy(wire: NetworkPolicy | undefined): Required<SandboxNetworkPolicy> {
  return toWirePolicy(wire ?? create(NetworkPolicySchema));
}
