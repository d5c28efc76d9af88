import { parseAddress } from "../../network-policy/address.ts";
import { type BoundsSettings, NetworkBounds } from "../../network-policy/bounds.ts";
import { judgeAddress, judgeName, type NetworkPolicy } from "../../network-policy/policy.ts";
import { type Denial, type Network, NO_TRAFFIC } from "../network.ts";

/** Networks in memory. `connect` stands for a connection that a container tries. */
export interface FakeNetwork extends Network {
  readonly policies: ReadonlyMap<string, NetworkPolicy>;
  connect(container: string, destination: string): "connected" | "refused";
  /** The next change of a policy fails with this. */
  failNext(error: Error): void;
}

export function createFakeNetwork(settings: BoundsSettings = { privateRanges: [], allowMetadata: false }): FakeNetwork {
  const bounds = new NetworkBounds(settings);
  const policies = new Map<string, NetworkPolicy>();
  const denials = new Map<string, Denial[]>();
  let failure: Error | null = null;
  const put = (container: string, policy: NetworkPolicy): void => {
    const thrown = failure;
    failure = null;
    if (thrown !== null) throw thrown;
    policies.set(container, policy);
  };
  return {
    support: { kind: "enforced" },
    bounds,
    policies,
    failNext: (error) => {
      failure = error;
    },
    open: (containers) => {
      for (const container of policies.keys()) if (!containers.includes(container)) policies.delete(container);
      return Promise.resolve();
    },
    attach: (container, policy) =>
      Promise.resolve().then(() => {
        put(container, policy);
        return { netnsPath: `/fake/netns/${container}`, nameserver: "198.18.0.1" };
      }),
    isAttached: (container) => policies.has(container),
    update: (container, policy) =>
      Promise.resolve().then(() => {
        put(container, policy);
      }),
    denials: (container) => Promise.resolve((denials.get(container) ?? []).toReversed()),
    traffic: () => Promise.resolve(NO_TRAFFIC),
    mend: () => Promise.resolve(),
    detach: (container) => {
      policies.delete(container);
      return Promise.resolve();
    },
    connect: (container, destination) => {
      const policy = policies.get(container);
      if (policy === undefined) return "refused";
      const judge = parseAddress(destination) === undefined ? judgeName : judgeAddress;
      const verdict = judge({ ...policy, bounds }, destination);
      if (verdict.kind === "allowed") return "connected";
      denials.set(container, [...(denials.get(container) ?? []), { atMs: 0, destination, rule: verdict.rule }]);
      return "refused";
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
