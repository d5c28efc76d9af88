import { existsSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { type Call, SandboxError } from "@turnbox/core";
import { parseAddress } from "../../network-policy/address.ts";
import type { NetworkBounds } from "../../network-policy/bounds.ts";
import { NO_TRAFFIC, type Traffic } from "../network.ts";
import { type AddressBlock, blockIndexOf, BLOCKS, createAddressBlock } from "./address-block.ts";
import { linkOf, NETNS_DIRECTORY, type NetworkNames } from "./names.ts";
import { ALLOWED_MARK, renderMachine, renderMachineRemoval, renderRouter, ROUTER_UPLINK } from "./ruleset.ts";
import type { ResolverPorts } from "./ruleset.ts";
import type { NetworkSystem } from "./system.ts";

const OUT_TABLE = "100";
const IN_TABLE = "101";

/** No redirects, no check of return paths (the routes of the marked packets differ), no IPv6. */
const ROUTER_SETTINGS = {
  "ipv4/ip_forward": "1",
  "ipv4/conf/all/rp_filter": "0",
  "ipv4/conf/default/rp_filter": "0",
  "ipv4/conf/all/send_redirects": "0",
  "ipv4/conf/default/send_redirects": "0",
  "ipv6/conf/all/disable_ipv6": "1",
  "ipv6/conf/default/disable_ipv6": "1",
} as const;

/** The addresses of a container's link. */
export interface LinkSlot {
  readonly block: AddressBlock;
  readonly slot: number;
}

/** The router of a host: a namespace in which the links of all its sessions end, with one way out. */
export class Router {
  readonly #system: NetworkSystem;
  readonly #names: NetworkNames;
  readonly #bounds: NetworkBounds;

  constructor(system: NetworkSystem, names: NetworkNames, bounds: NetworkBounds) {
    this.#system = system;
    this.#names = names;
    this.#bounds = bounds;
  }

  /** The block of the router; undefined if there is no router, or not all of it. */
  async find(call: Call): Promise<AddressBlock | undefined> {
    if (!exists(this.#names.router)) return undefined;
    const links = readLinks(await this.#system.ipJson(null, ["addr"], call));
    const uplink = links.find(({ name }) => name === this.#names.uplink);
    const index = uplink?.addresses.map((address) => blockIndexOf(address)).find((found) => found !== undefined);
    return index === undefined ? undefined : createAddressBlock(index);
  }

  /** Makes the router, with its rules, in a block that is free on this machine. */
  async make(call: Call): Promise<AddressBlock> {
    await this.remove(call);
    const taken = readLinks(await this.#system.ipJson(null, ["addr"], call)).flatMap(({ addresses }) =>
      addresses.flatMap((address) => blockIndexOf(address) ?? []),
    );
    const block = createAddressBlock(freeBlock(this.#names.uplink, new Set(taken)));
    const { router } = this.#names;
    await this.#system.ip(null, [`netns add ${router}`], call);
    await this.#system.tune(router, ROUTER_SETTINGS, call);
    await this.rule(block, call);
    await this.#makeUplink(block, call);
    return block;
  }

  async #makeUplink(block: AddressBlock, call: Call): Promise<void> {
    const { router, uplink } = this.#names;
    await this.#system.ip(
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
    await this.#system.ip(
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
  }

  /** Lets what the rules allow through the machine's own namespace. */
  async openMachine(block: AddressBlock, ports: ResolverPorts, call: Call): Promise<void> {
    await this.#system.nft(null, renderMachine(this.#names, block, ports), call);
    await this.#system.tune(null, { "ipv4/ip_forward": "1" }, call);
  }

  /** Puts the router's own rules in force, instead of those that are there. */
  async rule({ machine }: AddressBlock, call: Call): Promise<void> {
    const rules = { bounds: this.#bounds, hostAddresses: hostAddresses(), nameserver: machine };
    await this.#system.nft(this.#names.router, renderRouter(rules), call);
  }

  /** Whether the rules of router and machine are both there. */
  async isRuled(call: Call): Promise<boolean> {
    const [router, machine] = await Promise.all([
      this.#system.nftJson(this.#names.router, ["list", "chain", "inet", "tbx", "forward"], call),
      this.#system.nftJson(null, ["list", "chain", "ip", this.#names.table, "postrouting"], call),
    ]);
    return router !== undefined && machine !== undefined;
  }

  /** The slots of existing links, by the name of the router's end. */
  async links(block: AddressBlock, call: Call): Promise<ReadonlyMap<string, number>> {
    const links = readLinks(await this.#system.ipJson(this.#names.router, ["addr"], call));
    return new Map(
      links.flatMap(({ name, addresses }) => {
        const slot = addresses.map((address) => block.slotOf(address)).find((found) => found !== undefined);
        return slot === undefined ? [] : [[name, slot] as const];
      }),
    );
  }

  /** Makes the link of a container whose namespace is there. */
  async link(container: string, { block, slot }: LinkSlot, call: Call): Promise<void> {
    const { gateway, address, mac } = block.link(slot);
    const name = linkOf(container);
    const netns = this.#names.netns(container);
    await this.#system.ip(
      this.#names.router,
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
    await this.#system.ip(
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
  }

  /**
   * Removes the link and the namespace of a container and verifies that they are gone, so that their address can be given to
   * another one. Throws `RUNTIME_UNAVAILABLE` if they are still there.
   */
  async unlink(container: string, call: Call): Promise<void> {
    const netns = this.#names.netns(container);
    const { router } = this.#names;
    // The link first: a process that still holds the namespace is then cut off from everything.
    if (exists(router)) await this.#system.remove(["ip", "-n", router, "link", "del", linkOf(container)], call);
    await this.#system.remove(["ip", "netns", "del", netns], call);
    const links = exists(router) ? readLinks(await this.#system.ipJson(router, ["addr"], call)) : [];
    if (exists(netns) || links.some(({ name }) => name === linkOf(container)))
      throw new SandboxError("RUNTIME_UNAVAILABLE", "the network of a sandbox that has ended is still there");
  }

  /** What has passed over the link of a container; `NO_TRAFFIC` if there is none. */
  async traffic(container: string, call: Call): Promise<Traffic> {
    return readTraffic(await this.#system.ipJson(this.#names.router, ["-s", "link"], call), container);
  }

  async remove(call: Call): Promise<void> {
    const { router, uplink, table } = this.#names;
    await this.#system.remove(["ip", "link", "del", uplink], call);
    await this.#system.remove(["ip", "netns", "del", router], call);
    await this.#system.nft(null, renderMachineRemoval(table), call);
  }
}

function exists(netns: string): boolean {
  return existsSync(join(NETNS_DIRECTORY, netns));
}

/** The machine's own addresses: no sandbox may reach its services. */
function hostAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family }) => family === "IPv4")
    .map(({ address }) => address);
}

/** Hosts begin their search at different blocks, so that two that start at once do not choose the same. */
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
