import type { NetworkReport, SandboxNetworkPolicy } from "@turnbox/client";
import { printable } from "./printable.ts";

/** A whole policy. */
export type PolicyRules = Required<SandboxNetworkPolicy>;

/** Allows more. No destination means every public address; if that is allowed already, a list would take from it. */
export function allow(policy: PolicyRules, destinations: readonly string[]): PolicyRules {
  const denyList = without(policy.denyList, destinations);
  const isOpen = policy.allowOutbound && policy.allowList.length === 0;
  const allowList = isOpen || destinations.length === 0 ? [] : union(policy.allowList, destinations);
  return { ...policy, allowOutbound: true, allowList, denyList, required: true };
}

/** Allows less. A list that loses its last destination allows nothing, though an empty one would allow everything. */
export function deny(policy: PolicyRules, destinations: readonly string[]): PolicyRules {
  const allowList = without(policy.allowList, destinations);
  const isEmptied = policy.allowList.length > 0 && allowList.length === 0;
  const denyList = union(policy.denyList, destinations);
  return { ...policy, allowOutbound: policy.allowOutbound && !isEmptied, allowList, denyList, required: true };
}

/** Allows no connection out. What was denied stays denied, should something be allowed again. */
export const turnOff = (policy: PolicyRules): PolicyRules => ({ ...policy, allowOutbound: false, allowList: [] });

const without = (list: readonly string[], gone: readonly string[]): string[] =>
  list.filter((one) => !gone.includes(one));
const union = (list: readonly string[], more: readonly string[]): string[] => [...new Set([...list, ...more])];

/** What a host says about a policy of its own accord. */
export type PolicyNews = Pick<NetworkReport, "denials" | "ineffectiveEntries">;

export function formatPolicy(policy: PolicyRules, { denials, ineffectiveEntries }: PolicyNews): string {
  const { allowOutbound, allowList, denyList, allowPublicIngress } = policy;
  const destinations = allowList.length === 0 ? "every public address" : allowList.join(", ");
  const lines = [
    `out: ${allowOutbound ? destinations : "nowhere"}`,
    ...(ineffectiveEntries.length === 0 ? [] : [`closed by the host's settings: ${ineffectiveEntries.join(", ")}`]),
    ...(denyList.length === 0 ? [] : [`denied: ${denyList.join(", ")}`]),
    `in: exposed ports, ${allowPublicIngress ? "without a token" : "with a token"}`,
    ...(denials.length === 0 ? [] : ["refused lately:"]),
    ...denials.map(({ at, destination, rule }) => `  ${at.toISOString()}  ${destination}  (${rule})`),
  ];
  return lines.map((line) => `${printable(line)}\n`).join("");
}
