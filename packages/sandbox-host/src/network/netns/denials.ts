import { judgeAddress, type PolicyInForce } from "../../network-policy/policy.ts";
import { type Denial, MAX_DENIALS } from "../network.ts";
import { DENIAL_KEPT_S } from "./ruleset.ts";

/** Reads the set of refused destinations from `nft -j list set`. */
export function readDenials(
  output: unknown,
  { policy, nowMs }: { readonly policy: PolicyInForce; readonly nowMs: number },
): readonly Denial[] {
  const { nftables = [] } = (output ?? {}) as { readonly nftables?: readonly Entry[] };
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

interface Entry {
  readonly set?: {
    readonly elem?: readonly {
      readonly elem?: { readonly val?: { readonly concat?: readonly unknown[] }; readonly expires?: number };
    }[];
  };
}

/** The newest of several lists, newest first. */
export function newest(...lists: readonly (readonly Denial[])[]): readonly Denial[] {
  return lists
    .flat()
    .toSorted((a, b) => b.atMs - a.atMs)
    .slice(0, MAX_DENIALS);
}
