import { invalidArgument, SandboxError } from "@turnbox/core";
import { type AddressRange, formatAddress, parseAddress, parseRange } from "./address.ts";
import { CLOSED, type NetworkBounds, shutRule } from "./bounds.ts";
import { RangeSet } from "./range-set.ts";

/** Which addresses a session can connect to, and whether its ports are public. */
export interface NetworkPolicy {
  /** Exposed ports may be reached without a token. */
  readonly allowPublicIngress: boolean;
  readonly allowOutbound: boolean;
  /** Ranges of addresses and names; empty with `allowOutbound` means every public address. */
  readonly allowList: readonly string[];
  /** Wins over the allow list. */
  readonly denyList: readonly string[];
  /** A host that cannot enforce the policy fails instead of weakening it. */
  readonly required: boolean;
}

export const DENY_ALL: NetworkPolicy = {
  allowPublicIngress: false,
  allowOutbound: false,
  allowList: [],
  denyList: [],
  required: false,
};

/** Most entries of one list. */
const MAX_ENTRIES = 256;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** `field`: the policy's field in the request; default "network_policy". `bounds`: what policies can open; default is all. */
interface PolicyContext {
  readonly field?: string;
  readonly bounds?: NetworkBounds;
}

/**
 * The policy with its lists in one spelling. Throws `INVALID_ARGUMENT` if an entry is neither range nor name, or if one of the
 * allow list lies wholly in what the operator has not opened.
 */
export function parsePolicy(policy: NetworkPolicy, context: PolicyContext = {}): NetworkPolicy {
  const { field = "network_policy", bounds } = context;
  const allowList = parseEntries(`${field}.allow_list`, policy.allowList);
  for (const [index, entry] of allowList.entries()) {
    if (bounds?.isShut(entry) === true)
      throw invalidArgument(`${field}.allow_list[${String(index)}]`, `${entry} is ${shutRule(entry)}`);
  }
  const denyList = parseEntries(`${field}.deny_list`, policy.denyList);
  return { ...policy, allowList: [...new Set(allowList)], denyList: [...new Set(denyList)] };
}

function parseEntries(field: string, entries: readonly string[]): readonly string[] {
  if (entries.length > MAX_ENTRIES) throw invalidArgument(field, `must have at most ${String(MAX_ENTRIES)} entries`);
  return entries.map((entry, index) => parseEntry(`${field}[${String(index)}]`, entry));
}

function parseEntry(field: string, entry: string): string {
  const text = normalizeName(entry.trim());
  if (text.includes(":")) throw invalidArgument(field, `${entry} is IPv6, which sandboxes do not have`);
  const range = parseRange(text);
  if (range !== undefined) return formatRange(range);
  const name = text.startsWith("*.") ? text.slice(2) : text;
  const labels = name.split(".");
  const isName = labels.every((label) => LABEL.test(label)) && !/^\d+$/.test(labels.at(-1) ?? "");
  if (!isName || name.length > 253)
    throw invalidArgument(field, `${JSON.stringify(entry.slice(0, 80))} is neither a CIDR range nor a domain name`);
  return text;
}

function formatRange({ first, last }: AddressRange): string {
  return `${formatAddress(first)}/${String(32 - Math.log2(last - first + 1))}`;
}

/** Lower case, without the dot of the root. */
export function normalizeName(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

/** The ranges of a list. Names are in neither part. */
export interface ListedRanges {
  /** Wholly in closed ranges. Only these open closed addresses. */
  readonly closed: readonly string[];
  /** All others. They open public addresses, and none of the closed ranges that they cover as well. */
  readonly wide: readonly string[];
}

export function rangesOf(entries: readonly string[]): ListedRanges {
  const parsed = entries.flatMap((entry) => {
    const range = parseRange(entry);
    return range === undefined ? [] : [{ entry, isClosed: CLOSED.covers(range) }];
  });
  return {
    closed: parsed.flatMap(({ entry, isClosed }) => (isClosed ? [entry] : [])),
    wide: parsed.flatMap(({ entry, isClosed }) => (isClosed ? [] : [entry])),
  };
}

/** A policy on a host. Its lists open nothing outside of the bounds. */
export interface PolicyInForce extends NetworkPolicy {
  readonly bounds: NetworkBounds;
}

/** Whether a session under this policy has a network at all. */
export function needsNetwork(policy: NetworkPolicy | null): policy is NetworkPolicy {
  return policy?.allowOutbound === true;
}

/** A policy's decision about a destination. `rule` is the rule that refused it, as a sentence. */
export type Verdict = { readonly kind: "allowed" } | { readonly kind: "refused"; readonly rule: string };

const ALLOWED: Verdict = { kind: "allowed" };
const refuse = (rule: string): Verdict => ({ kind: "refused", rule });
const NO_OUTBOUND = "no outbound connections are allowed";
const NOT_LISTED = "not in the allow list";
const IN_DENY_LIST = "in the deny list";

/** The packet filter's decision about a connection to an address that no allowed name has opened. */
export function judgeAddress(policy: PolicyInForce, text: string): Verdict {
  const address = parseAddress(text);
  if (!policy.allowOutbound) return refuse(NO_OUTBOUND);
  if (address === undefined) return refuse("not an IPv4 address");
  if (RangeSet.of(policy.denyList).has(address)) return refuse(IN_DENY_LIST);
  if (policy.bounds.shut.has(address)) return refuse(shutRule(text));
  const { closed, wide } = rangesOf(policy.allowList);
  if (CLOSED.has(address)) {
    const rule = "a private, metadata or other special address that the allow list does not name by itself";
    return RangeSet.of(closed).has(address) ? ALLOWED : refuse(rule);
  }
  return policy.allowList.length === 0 || RangeSet.of(wide).has(address) ? ALLOWED : refuse(NOT_LISTED);
}

/** The resolver's decision about a name. */
export function judgeName(policy: NetworkPolicy, asked: string): Verdict {
  const name = normalizeName(asked);
  if (!policy.allowOutbound) return refuse(NO_OUTBOUND);
  if (policy.denyList.some((entry) => covers(entry, name))) return refuse(IN_DENY_LIST);
  const open = policy.allowList.length === 0 || policy.allowList.some((entry) => covers(entry, name));
  return open ? ALLOWED : refuse(NOT_LISTED);
}

/** Whether an allowed name may lead to an address: never to a closed or denied one, so that no name can be rebound to it. */
export function judgeAnswer(policy: PolicyInForce, text: string): Verdict {
  const verdict = judgeAddress(policy, text);
  return verdict.kind === "refused" && verdict.rule === NOT_LISTED ? ALLOWED : verdict;
}

/** `*.example.org` covers what is below example.org, not itself. */
export function covers(entry: string, name: string): boolean {
  return entry.startsWith("*.") ? name.endsWith(entry.slice(1)) : entry === name;
}

/** Whether and how a host enforces policies. */
export type NetworkSupport =
  | { readonly kind: "enforced" }
  /** Sessions have no network, also if their policy allows one. */
  | { readonly kind: "absent"; readonly why: string }
  /** Sessions have the machine's own network, also if their policy allows less. */
  | { readonly kind: "open"; readonly why: string };

/**
 * Throws `CAPABILITY_NOT_SUPPORTED` if the host cannot enforce a policy. A policy is never weakened: without a network, one that
 * allows something is refused; if everything is open, only one that is required is refused.
 */
export function assertEnforceable(policy: NetworkPolicy | null, support: NetworkSupport): void {
  if (policy === null || support.kind === "enforced") return;
  if (support.kind === "absent" ? !policy.allowOutbound : !policy.required) return;
  throw new SandboxError("CAPABILITY_NOT_SUPPORTED", `network_policy: ${support.why}`, {
    metadata: { field: "network_policy" },
  });
}
