import { SandboxError } from "@turnbox/client";
import type { NetworkPolicy } from "./profile/resolved.ts";

/** What of a network policy a provider can enforce. */
export interface NetworkAbility {
  readonly ingress: "enforced" | "open";
  readonly outbound: "enforced" | "open";
  readonly lists: "enforced" | "ignored";
}

/**
 * What the provider cannot enforce of the policy, as warnings; CAPABILITY_NOT_SUPPORTED where the policy is `required`.
 * A policy that restricts nothing can always be kept.
 */
export function checkNetwork(policy: NetworkPolicy, ability: NetworkAbility, provider: string): readonly string[] {
  const gaps = [
    ...(!policy.allowPublicIngress && ability.ingress === "open" ? ["allowPublicIngress: false"] : []),
    ...(!policy.allowOutbound && ability.outbound === "open" ? ["allowOutbound: false"] : []),
    ...(policy.allowList.length > 0 && ability.lists === "ignored" ? ["allowList"] : []),
    ...(policy.denyList.length > 0 && ability.lists === "ignored" ? ["denyList"] : []),
  ];
  if (policy.required && gaps.length > 0) {
    throw new SandboxError(
      "CAPABILITY_NOT_SUPPORTED",
      `${provider} cannot enforce network.${gaps.join(", network.")}`,
      {
        metadata: { provider, fields: gaps.join(", ") },
      },
    );
  }
  return gaps.map((gap) => `${provider} does not enforce network.${gap}`);
}
