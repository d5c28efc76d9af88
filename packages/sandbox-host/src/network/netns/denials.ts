import { judgeAddress, type PolicyInForce } from "../../network-policy/policy.ts";
import { type Denial, MAX_DENIALS } from "../network.ts";
import { DENIAL_KEPT_S } from "./ruleset.ts";

/** What the policy of one sandbox refused lately: names, which are kept here, and connections, which the packet filter keeps. */
export class Denials {
  readonly #names: Denial[] = [];

  addName(denial: Denial): void {
    this.#names.push(denial);
    if (this.#names.length > MAX_DENIALS) this.#names.shift();
  }

  /** The latest ones, newest first. `output` is that of `nft -j list set` for the sandbox's set of refused destinations. */
  list(output: unknown, options: { readonly policy: PolicyInForce; readonly nowMs: number }): readonly Denial[] {
    return [...readConnections(output, options), ...this.#names]
      .toSorted((a, b) => b.atMs - a.atMs)
      .slice(0, MAX_DENIALS);
  }
}

interface ListedSet {
  readonly set?: {
    readonly elem?: readonly {
      readonly elem?: { readonly val?: { readonly concat?: readonly unknown[] }; readonly expires?: number };
    }[];
  };
}

function readConnections(
  output: unknown,
  { policy, nowMs }: { readonly policy: PolicyInForce; readonly nowMs: number },
): readonly Denial[] {
  const { nftables = [] } = (output ?? {}) as { readonly nftables?: readonly ListedSet[] };
  const elements = nftables.flatMap(({ set }) => set?.elem ?? []);
  return elements.flatMap(({ elem }) => {
    const [address, protocol, port] = elem?.val?.concat ?? [];
    if (typeof address !== "string" || elem?.expires === undefined) return [];
    const verdict = judgeAddress(policy, address);
    return [
      {
        atMs: nowMs - Math.max(0, DENIAL_KEPT_S - elem.expires) * 1000,
        destination: port === 0 ? `${address}/${String(protocol)}` : `${address}:${String(port)}/${String(protocol)}`,
        rule: verdict.kind === "refused" ? verdict.rule : "refused by an earlier policy",
      },
    ];
  });
}
