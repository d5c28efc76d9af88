import { existsSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { SandboxError } from "@turnbox/core";
import { parseAddress } from "../../network-policy/address.ts";
import type { NetworkBounds } from "../../network-policy/bounds.ts";
import { NO_TRAFFIC, type Traffic } from "../network.ts";
import { type AddressBlock, blockIndexOf, BLOCKS, createAddressBlock } from "./address-block.ts";
import { linkOf, NETNS_DIRECTORY, type NetworkNames } from "./names.ts";
import { ALLOWED_MARK, renderMachine, renderMachineRemoval, renderRouter, ROUTER_UPLINK } from "./ruleset.ts";
import type { ResolverPorts } from "./ruleset.ts";
import type { NetworkSystem } from "./system.ts";

interface Call {
  readonly signal: AbortSignal;
}

const OUT_TABLE = "100";
const IN_TABLE = "101";

/** The router of a host: a namespace in which the links of all its sessions end, with one way out. */
export interface Router {
  /** Where it is there and whole. */
  find(call: Call): Promise<AddressBlock | undefined>;
  make(call: Call): Promise<AddressBlock>;
  /** Lets what the rules allow through the machine's own namespace. */
  openMachine(block: AddressBlock, ports: ResolverPorts, call: Call): Promise<void>;
  /** Puts the router's own rules in force, in the place of those that are there. */
  rule(block: AddressBlock, call: Call): Promise<void>;
  /** Whether the rules of router and machine are both there. */
  isRuled(call: Call): Promise<boolean>;
  /** Slots of links that are there, by the name of the router's end. */
  links(block: AddressBlock, call: Call): Promise<ReadonlyMap<string, number>>;
  /** Lays the link of a container whose namespace is there. */
  link(container: string, block: AddressBlock, slot: number, call: Call): Promise<void>;
  /**
   * Takes the link and the namespace of a container away and looks that they are gone: whoever is told so may give their
   * address to another one. Throws `RUNTIME_UNAVAILABLE` where they are still there.
   */
  unlink(container: string, call: Call): Promise<void>;
  /** What has gone over the link of a container; nothing where there is none. */
  traffic(container: string, call: Call): Promise<Traffic>;
  remove(call: Call): Promise<void>;
}

export function createRouter(system: NetworkSystem, names: NetworkNames, bounds: NetworkBounds): Router {
  const exists = (netns: string): boolean => existsSync(join(NETNS_DIRECTORY, netns));

  const find: Router["find"] = async (call) => {
    if (!exists(names.router)) return undefined;
    const uplink = readLinks(await system.ipJson(null, ["addr"], call)).find(({ name }) => name === names.uplink);
    const index = uplink?.addresses.map((address) => blockIndexOf(address)).find((found) => found !== undefined);
    return index === undefined ? undefined : createAddressBlock(index);
  };

  const rule: Router["rule"] = async ({ machine }, call) => {
    const rules = { bounds, hostAddresses: hostAddresses(), nameserver: machine };
    await system.nft(names.router, renderRouter(rules), call);
  };

  const remove: Router["remove"] = async (call) => {
    await system.remove(["ip", "link", "del", names.uplink], call);
    await system.remove(["ip", "netns", "del", names.router], call);
    await system.nft(null, renderMachineRemoval(names.table), call);
  };

  return {
    find,
    rule,
    remove,
    make: async (call) => {
      await remove(call);
      const taken = readLinks(await system.ipJson(null, ["addr"], call)).flatMap(({ addresses }) =>
        addresses.flatMap((address) => blockIndexOf(address) ?? []),
      );
      const block = createAddressBlock(freeBlock(names.uplink, new Set(taken)));
      const { router, uplink } = names;
      await system.ip(null, [`netns add ${router}`], call);
      await system.tune(
        router,
        {
          "ipv4/ip_forward": "1",
          "ipv4/conf/all/rp_filter": "0",
          "ipv4/conf/default/rp_filter": "0",
          "ipv4/conf/all/send_redirects": "0",
          "ipv4/conf/default/send_redirects": "0",
          "ipv6/conf/all/disable_ipv6": "1",
          "ipv6/conf/default/disable_ipv6": "1",
        },
        call,
      );
      await rule(block, call);
      await system.ip(
        null,
        [
          `link add ${uplink} type veth peer name ${ROUTER_UPLINK} netns ${router}`,
          `link set dev ${uplink} addrgenmode none`,
          `addr add ${block.machine}/30 dev ${uplink}`,
          `link set dev ${uplink} up`,
          `route add ${block.range} via ${block.router} dev ${uplink}`,
        ],
        call,
      );
      // Only packets with the mark have a way out, and only what comes from outside or from the router a way in.
      await system.ip(
        router,
        [
          "link set dev lo up",
          `addr add ${block.router}/30 dev ${ROUTER_UPLINK} noprefixroute`,
          `link set dev ${ROUTER_UPLINK} up`,
          `route add ${block.machine}/32 dev ${ROUTER_UPLINK} table ${OUT_TABLE}`,
          `route add default via ${block.machine} dev ${ROUTER_UPLINK} table ${OUT_TABLE}`,
          `rule add fwmark ${ALLOWED_MARK} lookup ${OUT_TABLE}`,
          `rule add iif ${ROUTER_UPLINK} lookup ${IN_TABLE}`,
          `rule add iif lo lookup ${IN_TABLE}`,
        ],
        call,
      );
      return block;
    },
    openMachine: async (block, ports, call) => {
      await system.nft(null, renderMachine(names, block, ports), call);
      await system.tune(null, { "ipv4/ip_forward": "1" }, call);
    },
    isRuled: async (call) => {
      const [router, machine] = await Promise.all([
        system.nftJson(names.router, ["list", "chain", "inet", "tbx", "forward"], call),
        system.nftJson(null, ["list", "chain", "ip", names.table, "postrouting"], call),
      ]);
      return router !== undefined && machine !== undefined;
    },
    links: async (block, call) => {
      const links = readLinks(await system.ipJson(names.router, ["addr"], call));
      return new Map(
        links.flatMap(({ name, addresses }) => {
          const slot = addresses.map((address) => block.slotOf(address)).find((found) => found !== undefined);
          return slot === undefined ? [] : [[name, slot] as const];
        }),
      );
    },
    unlink: async (container, call) => {
      const netns = names.netns(container);
      // The link first: a process that still holds the namespace is then cut off from everything.
      if (exists(names.router)) await system.remove(["ip", "-n", names.router, "link", "del", linkOf(container)], call);
      await system.remove(["ip", "netns", "del", netns], call);
      const links = exists(names.router) ? readLinks(await system.ipJson(names.router, ["addr"], call)) : [];
      if (exists(netns) || links.some(({ name }) => name === linkOf(container)))
        throw new SandboxError("RUNTIME_UNAVAILABLE", "the network of a sandbox that has ended is still there");
    },
    traffic: async (container, call) => readTraffic(await system.ipJson(names.router, ["-s", "link"], call), container),
    link: async (container, block, slot, call) => {
      const { gateway, address, mac } = block.link(slot);
      const name = linkOf(container);
      const netns = names.netns(container);
      await system.ip(
        names.router,
        [
          `link add ${name} type veth peer name eth0 netns ${netns}`,
          `link set dev ${name} addrgenmode none`,
          `addr add ${gateway}/30 dev ${name} noprefixroute`,
          `link set dev ${name} up`,
          `route add ${address}/32 dev ${name} table ${IN_TABLE}`,
          `neigh replace ${address} lladdr ${mac} dev ${name} nud permanent`,
        ],
        call,
      );
      await system.ip(
        netns,
        [
          "link set dev lo up",
          `link set dev eth0 address ${mac}`,
          "link set dev eth0 addrgenmode none",
          `addr add ${address}/30 dev eth0`,
          "link set dev eth0 up",
          `route add default via ${gateway}`,
        ],
        call,
      );
    },
  };
}

/** The machine's own addresses: its services are not a sandbox's business. */
function hostAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family }) => family === "IPv4")
    .map(({ address }) => address);
}

/** Hosts begin to look at different places, so that two that start at once do not meet. */
function freeBlock(uplink: string, taken: ReadonlySet<number>): number {
  const start = Number.parseInt(uplink.slice(-2), 16) % BLOCKS;
  for (let step = 0; step < BLOCKS; step += 1) {
    const index = (start + step) % BLOCKS;
    if (!taken.has(index)) return index;
  }
  throw new SandboxError("RUNTIME_UNAVAILABLE", "no block of 198.18.0.0/15 is free for the links of sessions");
}

interface LinkAddresses {
  readonly name: string;
  readonly addresses: readonly string[];
}

/** Reads `ip -j addr`. */
function readLinks(output: unknown): readonly LinkAddresses[] {
  const links = output as readonly {
    readonly ifname?: string;
    readonly addr_info?: readonly { readonly local?: string }[];
  }[];
  return links.map(({ ifname = "", addr_info: info = [] }) => ({
    name: ifname,
    addresses: info.flatMap(({ local }) => (local !== undefined && parseAddress(local) !== undefined ? [local] : [])),
  }));
}

interface LinkCounts {
  readonly ifname?: string;
  readonly stats64?: { readonly rx?: { readonly bytes?: number }; readonly tx?: { readonly bytes?: number } };
}

/** Reads `ip -j -s link`. What the router's end receives, the sandbox has sent. */
function readTraffic(output: unknown, container: string): Traffic {
  const counts = (output as readonly LinkCounts[]).find(({ ifname }) => ifname === linkOf(container))?.stats64;
  if (counts === undefined) return NO_TRAFFIC;
  return { receivedBytes: counts.tx?.bytes ?? 0, sentBytes: counts.rx?.bytes ?? 0 };
}
