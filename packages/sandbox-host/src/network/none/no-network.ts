import { SandboxError } from "@turnbox/core";
import type { NetworkBounds } from "../../network-policy/bounds.ts";
import type { NetworkSupport } from "../../network-policy/policy.ts";
import { type Network, NO_TRAFFIC } from "../network.ts";

/** For hosts on which no policy can be put in force. */
export function createNoNetwork(
  support: Exclude<NetworkSupport, { readonly kind: "enforced" }>,
  bounds: NetworkBounds,
): Network {
  const refused = (): never => {
    throw new SandboxError("CAPABILITY_NOT_SUPPORTED", support.why);
  };
  return {
    support,
    bounds,
    open: () => Promise.resolve(),
    attach: () => Promise.resolve().then(refused),
    isAttached: () => false,
    update: () => Promise.resolve(),
    denials: () => Promise.resolve([]),
    traffic: () => Promise.resolve(NO_TRAFFIC),
    mend: () => Promise.resolve(),
    detach: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
