import { createHash } from "node:crypto";
import { CLOSED, type NetworkBounds } from "../../network-policy/bounds.ts";
import { type PolicyInForce, rangesOf } from "../../network-policy/policy.ts";
import type { AddressBlock, Link } from "./address-block.ts";
import { linkOf } from "./names.ts";

/**
 * Packets that the rules allow get this mark, and only marked ones have a route out of the router. Without the rules nothing
 * is marked and everything is shut.
 */
export const ALLOWED_MARK = "0x7b";
export const ROUTER_UPLINK = "uplink";
const T = "inet tbx";
/** How long a refusal is kept. */
export const DENIAL_KEPT_S = 3600;

export interface RouterRules {
  readonly bounds: NetworkBounds;
  /** The machine's own addresses, which are shut even if they are public. */
  readonly hostAddresses: readonly string[];
  /** The resolver's address: the only one of the machine that sandboxes can connect to. */
  readonly nameserver: string;
}

/**
 * The router's rules, without any session's. Everything is decided before routing, at the host's end of the links: packets of
 * gVisor pass no rule of the sandbox's own namespace. Packets to shut addresses are also dropped on their way out, because an
 * earlier service may have made the rules of a session under other settings.
 */
export function renderRouter({ bounds, hostAddresses, nameserver }: RouterRules): string {
  const set = "{ type ipv4_addr; flags interval; auto-merge; }";
  return `
add table ${T}
add set ${T} closed ${set}
flush set ${T} closed
add element ${T} closed { ${[...CLOSED.cidrs(), ...hostAddresses].join(", ")} }
add set ${T} shut ${set}
flush set ${T} shut
add element ${T} shut { ${[...bounds.shut.cidrs(), ...hostAddresses].join(", ")} }
add map ${T} sessions { type ifname : verdict; }
add chain ${T} prerouting { type filter hook prerouting priority mangle; policy drop; }
flush chain ${T} prerouting
add rule ${T} prerouting iifname "lo" accept
add rule ${T} prerouting meta nfproto ipv6 drop
add rule ${T} prerouting iifname "${ROUTER_UPLINK}" ct state established,related accept
add rule ${T} prerouting iifname vmap @sessions
add chain ${T} forward { type filter hook forward priority filter; policy drop; }
flush chain ${T} forward
add rule ${T} forward iifname "${ROUTER_UPLINK}" ct state established,related accept
add rule ${T} forward ip daddr != ${nameserver} ip daddr @shut drop
add rule ${T} forward oifname "${ROUTER_UPLINK}" meta mark ${ALLOWED_MARK} accept
add chain ${T} input { type filter hook input priority filter; policy drop; }
`;
}

export interface SessionRules {
  readonly container: string;
  readonly link: Link;
  readonly policy: PolicyInForce;
  /** The resolver's address. */
  readonly nameserver: string;
  /** Addresses that allowed names lead to; null keeps those that are there. */
  readonly pins: readonly Pin[] | null;
}

/** An address that is allowed for some time. */
export interface Pin {
  readonly address: string;
  readonly seconds: number;
}

const namesOf = (container: string) => ({
  chain: `${T} s_${container}`,
  refusal: `${T} r_${container}`,
  allowed: `${T} a_${container}`,
  listed: `${T} c_${container}`,
  denied: `${T} n_${container}`,
  pinned: `${T} p_${container}`,
  denials: `${T} d_${container}`,
});

/** Makes the objects of a session that are missing. */
function declare(container: string): string {
  const n = namesOf(container);
  const ranges = "{ type ipv4_addr; flags interval; auto-merge; }";
  return `
add set ${n.allowed} ${ranges}
add set ${n.listed} ${ranges}
add set ${n.denied} ${ranges}
add set ${n.pinned} { type ipv4_addr; flags timeout; size 8192; }
add set ${n.denials} { type ipv4_addr . inet_proto . inet_service; flags dynamic,timeout; timeout ${String(DENIAL_KEPT_S)}s; size 512; }
add chain ${n.chain}
add chain ${n.refusal}
`;
}

/**
 * All rules of a session, as one transaction. A connection is judged when it begins and again after each change of the policy:
 * the mark of a connection shows under which policy it was judged.
 */
export function renderSession({ container, link, policy, nameserver, pins }: SessionRules): string {
  const n = namesOf(container);
  const listed = rangesOf(policy.allowList);
  const denied = rangesOf(policy.denyList);
  const pass = `ct mark set ${policyMark(policy)} meta mark set ${ALLOWED_MARK} accept`;
  const rules = policy.allowOutbound
    ? `
add rule ${n.chain} ip daddr ${nameserver} meta l4proto { tcp, udp } th dport 53 meta mark set ${ALLOWED_MARK} accept
add rule ${n.chain} ct state established ct mark ${policyMark(policy)} meta mark set ${ALLOWED_MARK} accept
add rule ${n.chain} ip daddr @n_${container} goto r_${container}
add rule ${n.chain} ip daddr @shut goto r_${container}
add rule ${n.chain} ip daddr @c_${container} ${pass}
add rule ${n.chain} ip daddr @closed goto r_${container}
add rule ${n.chain} ip daddr @a_${container} ${pass}
add rule ${n.chain} ip daddr @p_${container} ${pass}
${policy.allowList.length === 0 ? `add rule ${n.chain} ${pass}` : ""}`
    : "";
  return `${declare(container)}
flush chain ${n.chain}
flush chain ${n.refusal}
flush set ${n.allowed}
flush set ${n.listed}
flush set ${n.denied}
${elements(n.allowed, listed.wide)}
${elements(n.listed, listed.closed)}
${elements(n.denied, [...denied.wide, ...denied.closed])}
add rule ${n.refusal} meta l4proto { tcp, udp } update @d_${container} { ip daddr . meta l4proto . th dport }
add rule ${n.refusal} meta l4proto != { tcp, udp } update @d_${container} { ip daddr . meta l4proto . 0 }
add rule ${n.refusal} meta l4proto tcp reject with tcp reset
add rule ${n.refusal} reject with icmpx admin-prohibited
add rule ${n.chain} ether saddr != ${link.mac} drop
add rule ${n.chain} ip saddr != ${link.address} drop
${rules}
add rule ${n.chain} goto r_${container}
${pins === null ? "" : `flush set ${n.pinned}\n${renderPins(container, pins)}`}
add element ${T} sessions { "${linkOf(container)}" : goto s_${container} }
`;
}

/** Adds addresses, or extends their time: an element that is there keeps its old end unless it is removed first. */
export function renderPins(container: string, pins: readonly Pin[]): string {
  const { pinned } = namesOf(container);
  return pins
    .map(({ address, seconds }) => {
      const timed = `${pinned} { ${address} timeout ${String(seconds)}s }`;
      return `add element ${timed}\ndelete element ${pinned} { ${address} }\nadd element ${timed}\n`;
    })
    .join("");
}

/** Removes the rules of a session, also if only some of them are there. */
export function renderRemoval(container: string): string {
  const n = namesOf(container);
  const element = `${T} sessions { "${linkOf(container)}"`;
  return `${declare(container)}
add element ${element} : goto s_${container} }
delete element ${element} }
flush chain ${n.chain}
flush chain ${n.refusal}
delete chain ${n.chain}
delete chain ${n.refusal}
delete set ${n.allowed}
delete set ${n.listed}
delete set ${n.denied}
delete set ${n.pinned}
delete set ${n.denials}
`;
}

/** The ports that the resolver listens on; packets for port 53 are redirected to them. */
export interface ResolverPorts {
  readonly udp: number;
  readonly tcp: number;
}

/**
 * The rules of the machine's own namespace: sandboxes leave under the machine's address, can connect to the resolver and to
 * nothing else of the machine, and no connection to them can begin.
 */
export function renderMachine(
  { table, uplink }: { readonly table: string; readonly uplink: string },
  block: AddressBlock,
  ports: ResolverPorts,
): string {
  const { udp, tcp } = ports;
  const from = `iifname "${uplink}"`;
  return `
add table ip ${table}
delete table ip ${table}
table ip ${table} {
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    ${from} ip daddr ${block.machine} udp dport 53 dnat to ${block.machine}:${String(udp)}
    ${from} ip daddr ${block.machine} tcp dport 53 dnat to ${block.machine}:${String(tcp)}
  }
  chain input {
    type filter hook input priority filter - 10; policy accept;
    ${from} ip saddr ${block.range} ip daddr ${block.machine} udp dport ${String(udp)} accept
    ${from} ip saddr ${block.range} ip daddr ${block.machine} tcp dport ${String(tcp)} accept
    ${from} drop
  }
  chain forward {
    type filter hook forward priority filter - 10; policy accept;
    ${from} ip saddr != ${block.range} drop
    oifname "${uplink}" ct state new drop
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${block.range} oifname != "${uplink}" masquerade
  }
}
`;
}

export function renderMachineRemoval(table: string): string {
  return `add table ip ${table}\ndelete table ip ${table}\n`;
}

function elements(set: string, entries: readonly string[]): string {
  return entries.length === 0 ? "" : `add element ${set} { ${entries.join(", ")} }`;
}

/**
 * Identifies the policy and bounds that a connection was judged under. Never 0, the mark of new connections.
 */
function policyMark({ allowOutbound, allowList, denyList, bounds }: PolicyInForce): string {
  const digest = createHash("sha256")
    .update(JSON.stringify([allowOutbound, allowList, denyList, bounds.shut.cidrs()]))
    .digest();
  return `0x${((digest.readUInt32BE(0) | 1) >>> 0).toString(16)}`;
}
