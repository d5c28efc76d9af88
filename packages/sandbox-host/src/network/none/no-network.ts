import { SandboxError } from "@turnbox/core";
import type { NetworkBounds } from "../../network-policy/bounds.ts";
import type { NetworkSupport } from "../../network-policy/policy.ts";
import { type Network, NO_TRAFFIC } from "../network.ts";

/** For hosts on which no policy can be enforced: no container has a network of its own. */
export function createNoNetwork(
  support: Exclude<NetworkSupport, { readonly kind: "enforced" }>,
  bounds: NetworkBounds,
): Network {
  return {
    support,
    bounds,
    open: async () => undefined,
    attach: async () => {
      throw new SandboxError("CAPABILITY_NOT_SUPPORTED", support.why);
    },
    isAttached: () => false,
    update: async () => undefined,
    denials: async () => [],
    traffic: async () => NO_TRAFFIC,
    mend: async () => undefined,
    detach: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
}
