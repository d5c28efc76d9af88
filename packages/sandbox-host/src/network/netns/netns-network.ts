import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type Clock, type CommandRunner, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import { createSerial } from "../../async/serial.ts";
import type { NetworkBounds } from "../../network-policy/bounds.ts";
import {
  DENY_ALL,
  judgeAnswer,
  judgeName,
  type NetworkPolicy,
  type PolicyInForce,
} from "../../network-policy/policy.ts";
import { type Denial, MAX_DENIALS, type Network, NO_TRAFFIC } from "../network.ts";
import type { AddressBlock, Link } from "./address-block.ts";
import { newest, readDenials } from "./denials.ts";
import { createNetworkNames, linkOf, NETNS_DIRECTORY } from "./names.ts";
import { type Asker, type LookUp, type NameAddress, type Resolver, startResolver } from "./resolver.ts";
import { createRouter } from "./router.ts";
import { type Pin, renderPins, renderRemoval, renderSession } from "./ruleset.ts";
import { createNetworkSystem } from "./system.ts";

interface Call {
  readonly signal: AbortSignal;
}

interface Entry {
  readonly container: string;
  readonly link: Link;
  readonly slot: number;
  /** Null until somebody says what the policy of a network is that an earlier service made: its old rules hold. */
  policy: PolicyInForce | null;
  readonly pins: Map<string, { readonly name: string; readonly untilMs: number }>;
  readonly refusedNames: Denial[];
}

/** An address counts a little longer than its answer: who has just asked must be able to connect. */
const PIN_GRACE_S = 30;
const MIN_PIN_S = 60;
/** Most addresses that count for one session at a time. */
const MAX_PINS = 4096;

/** Networks by namespaces, veth pairs and nftables. The machine is not touched before the first session needs one. */
export function createNetnsNetwork(options: {
  readonly runner: CommandRunner;
  readonly clock: Clock;
  readonly log?: Logger;
  /** The host's directory, which all names are derived from. */
  readonly dataDirectory: string;
  readonly lookUp: LookUp;
  readonly bounds: NetworkBounds;
}): Network {
  const { clock, log, lookUp, bounds } = options;
  const names = createNetworkNames(options.dataDirectory);
  const system = createNetworkSystem(options.runner);
  const router = createRouter(system, names, bounds);
  const serial = createSerial();
  const entries = new Map<string, Entry>();
  /** The same by the address of the sandbox: the resolver asks for every packet. */
  const sources = new Map<string, Entry>();
  const enter = (entry: Entry): void => {
    entries.set(entry.container, entry);
    sources.set(entry.link.address, entry);
  };
  const remove = (container: string): void => {
    const entry = entries.get(container);
    entries.delete(container);
    if (entry !== undefined && sources.get(entry.link.address) === entry) sources.delete(entry.link.address);
  };
  let lastSlot = 0;
  let up: { readonly block: AddressBlock; readonly resolver: Resolver } | null = null;

  const isAttached = (container: string): boolean => existsSync(join(NETNS_DIRECTORY, names.netns(container)));
  const found = (): readonly string[] => listed(NETNS_DIRECTORY).flatMap((netns) => names.containerOf(netns) ?? []);

  const askerOf = (source: string): Asker | undefined => {
    const entry = sources.get(source);
    const policy = entry?.policy;
    if (entry === undefined || policy === undefined || policy === null) return undefined;
    return {
      policy,
      pin: (name, addresses) => pin(entry, { name, addresses, policy }),
      refused: (destination, rule) => {
        entry.refusedNames.push({ atMs: clock.nowMs(), destination, rule });
        if (entry.refusedNames.length > MAX_DENIALS) entry.refusedNames.shift();
      },
    };
  };

  const pin = async (
    entry: Entry,
    asked: { readonly name: string; readonly addresses: readonly NameAddress[]; readonly policy: PolicyInForce },
  ): Promise<void> => {
    // Without a list of names every public address is open as it is.
    if (asked.policy.allowList.length === 0) return;
    const nowMs = clock.nowMs();
    for (const [address, { untilMs }] of entry.pins) if (untilMs <= nowMs) entry.pins.delete(address);
    if (entry.pins.size + asked.addresses.length > MAX_PINS) throw new Error("too many addresses at once");
    const pins = asked.addresses.map(({ address, ttl }) => ({
      address,
      seconds: Math.max(ttl, MIN_PIN_S) + PIN_GRACE_S,
    }));
    await serial.run(async () => {
      if (entry.policy !== asked.policy) throw new Error("the policy has changed meanwhile");
      await system.nft(names.router, renderPins(entry.container, pins), {
        signal: AbortSignal.timeout(NFT_TIMEOUT_MS),
      });
      for (const { address, seconds } of pins) {
        entry.pins.set(address, { name: asked.name, untilMs: nowMs + seconds * 1000 });
      }
    });
  };

  /** What still counts under a policy. */
  const pinsUnder = (entry: Entry, policy: PolicyInForce): readonly Pin[] => {
    const nowMs = clock.nowMs();
    return [...entry.pins].flatMap(([address, { name, untilMs }]) => {
      const seconds = Math.floor((untilMs - nowMs) / 1000);
      const open = [judgeName(policy, name), judgeAnswer(policy, address)].every(({ kind }) => kind === "allowed");
      return open && seconds > 0 ? [{ address, seconds }] : [];
    });
  };

  const raise = async (call: Call) => {
    if (up !== null) return up;
    const there = await router.find(call);
    const block = there ?? (await router.make(call));
    if (there !== undefined) {
      for (const [name, slot] of await router.links(block, call)) await adopt(block, { name, slot }, call);
      // The rules of an earlier service may be of other settings.
      await router.rule(block, call);
    }
    const resolver = await startResolver({ address: block.machine, lookUp, askerOf, clock });
    try {
      await router.openMachine(block, resolver.ports, call);
    } catch (thrown) {
      await resolver[Symbol.asyncDispose]();
      throw thrown;
    }
    up = { block, resolver };
    return up;
  };

  /** A link whose namespace is gone was cut off on its way out. */
  const adopt = async (
    block: AddressBlock,
    { name, slot }: { readonly name: string; readonly slot: number },
    call: Call,
  ): Promise<void> => {
    const container = found().find((id) => linkOf(id) === name);
    if (container === undefined) await system.remove(["ip", "-n", names.router, "link", "del", name], call);
    else enter(newEntry(container, { block, slot, policy: null }));
  };

  const lower = async (call: Call): Promise<void> => {
    const resolver = up?.resolver;
    up = null;
    entries.clear();
    sources.clear();
    await resolver?.[Symbol.asyncDispose]();
    await router.remove(call);
  };

  const enforce = async (entry: Entry, wanted: NetworkPolicy, call: Call): Promise<void> => {
    const { block } = await raise(call);
    const policy = { ...wanted, bounds };
    const pins = entry.policy === null ? null : pinsUnder(entry, policy);
    const { container, link } = entry;
    await system.nft(names.router, renderSession({ container, link, policy, nameserver: block.machine, pins }), call);
    entry.policy = policy;
  };

  const detach = async (container: string, call: Call): Promise<void> => {
    if (!isAttached(container) && !entries.has(container)) return;
    await router.unlink(container, call);
    remove(container);
    if (found().length === 0) {
      await lower(call);
      return;
    }
    await system.nft(names.router, renderRemoval(container), call).catch((err: unknown) => {
      // Rules without a link match nothing.
      log?.warn({ err, container }, "rules of a network that is gone could not be taken away");
    });
  };

  return {
    support: { kind: "enforced" },
    bounds,
    isAttached,
    open: (containers, call) =>
      serial.run(async () => {
        const strays = found().filter((container) => !containers.includes(container));
        for (const container of strays) await detach(container, call);
        if (found().length > 0) await raise(call);
        else if (existsSync(join(NETNS_DIRECTORY, names.router))) await lower(call);
      }),
    attach: (container, policy, call) =>
      serial.run(async () => {
        const { block } = await raise(call);
        const slot = freeSlot(block, entries, lastSlot);
        lastSlot = slot;
        const netns = names.netns(container);
        const entry = newEntry(container, { block, slot, policy: { ...DENY_ALL, bounds } });
        await system.ip(null, [`netns add ${netns}`], call);
        try {
          enter(entry);
          // The rules are there before the link is: a sandbox has never a link without them.
          await enforce(entry, policy, call);
          await router.link(container, block, slot, call);
        } catch (thrown) {
          await detach(container, { signal: AbortSignal.timeout(NFT_TIMEOUT_MS) });
          throw thrown;
        }
        return { netnsPath: join(NETNS_DIRECTORY, netns), nameserver: block.machine };
      }),
    update: (container, policy, call) =>
      serial.run(async () => {
        if (!isAttached(container)) return;
        await raise(call);
        const entry = entries.get(container);
        if (entry === undefined) throw new SandboxError("RUNTIME_UNAVAILABLE", "the sandbox has lost its network");
        await enforce(entry, policy, call);
      }),
    denials: async (container, call) => {
      const entry = entries.get(container);
      if (entry === undefined) return [];
      const args = ["list", "set", "inet", "tbx", `d_${container}`];
      const output = await system.nftJson(names.router, args, call);
      const connections = readDenials(output, {
        policy: entry.policy ?? { ...DENY_ALL, bounds },
        nowMs: clock.nowMs(),
      });
      return newest(connections, entry.refusedNames);
    },
    traffic: async (container, call) => (isAttached(container) ? await router.traffic(container, call) : NO_TRAFFIC),
    mend: (call) =>
      serial.run(async () => {
        if (up === null || (await router.isRuled(call))) return;
        log?.error("the rules of the sandboxes' network were taken away; they had none since, and get them again now");
        await router.rule(up.block, call);
        for (const entry of entries.values()) await enforce(entry, entry.policy ?? DENY_ALL, call);
        await router.openMachine(up.block, up.resolver.ports, call);
      }),
    detach: (container, call) => serial.run(() => detach(container, call)),
    [Symbol.asyncDispose]: async () => {
      await serial.idle();
      const resolver = up?.resolver;
      up = null;
      await resolver?.[Symbol.asyncDispose]();
    },
  };
}

const NFT_TIMEOUT_MS = 10_000;

function newEntry(
  container: string,
  at: { readonly block: AddressBlock; readonly slot: number; readonly policy: PolicyInForce | null },
): Entry {
  const { block, slot, policy } = at;
  return { container, slot, link: block.link(slot), policy, pins: new Map(), refusedNames: [] };
}

/** The next one after the last: packets that are late for the one before find nobody in its place. */
function freeSlot(block: AddressBlock, entries: ReadonlyMap<string, Entry>, last: number): number {
  const taken = new Set([...entries.values()].map(({ slot }) => slot));
  for (let step = 0; step < block.links; step += 1) {
    const slot = ((last + step) % block.links) + 1;
    if (!taken.has(slot)) return slot;
  }
  throw new SandboxError("RUNTIME_UNAVAILABLE", `a host has at most ${String(block.links)} sessions with a network`);
}

function listed(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
