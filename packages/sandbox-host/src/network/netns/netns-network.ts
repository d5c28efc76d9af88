import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type Call, type Clock, type CommandRunner, type Log, Mutex, SandboxError } from "@turnbox/core";
import type { NetworkBounds } from "../../network-policy/bounds.ts";
import { DENY_ALL, type NetworkPolicy, type PolicyInForce } from "../../network-policy/policy.ts";
import { type Attachment, type Denial, type Network, NO_TRAFFIC, type Traffic } from "../network.ts";
import type { AddressBlock } from "./address-block.ts";
import { Attached, AttachedNetworks } from "./attached.ts";
import { createNetworkNames, linkOf, NETNS_DIRECTORY, type NetworkNames } from "./names.ts";
import { type Asker, type LookUp, type NameAddress, type Resolver, startResolver } from "./resolver.ts";
import { Router } from "./router.ts";
import { renderPins, renderRemoval, renderSession } from "./ruleset.ts";
import { createNetworkSystem, type NetworkSystem } from "./system.ts";

export interface NetnsNetworkOptions {
  readonly runner: CommandRunner;
  readonly clock: Clock;
  /** Default is no log. */
  readonly log?: Log;
  /** The host's directory, which all names are derived from. */
  readonly dataDirectory: string;
  readonly lookUp: LookUp;
  readonly bounds: NetworkBounds;
}

/** The router and the resolver, which are there while at least one container has a network. */
interface Shared {
  readonly block: AddressBlock;
  readonly resolver: Resolver;
}

/** An address stays open longer than its answer is valid, so that a client that has just asked can connect. */
const PIN_GRACE_S = 30;
const MIN_PIN_S = 60;
const NFT_TIMEOUT_MS = 10_000;

/** Networks by namespaces, veth pairs and nftables. The machine is not touched before the first container needs one. */
export class NetnsNetwork implements Network {
  readonly support = { kind: "enforced" } as const;
  readonly bounds: NetworkBounds;
  readonly #clock: Clock;
  readonly #log: Log | undefined;
  readonly #lookUp: LookUp;
  readonly #names: NetworkNames;
  readonly #system: NetworkSystem;
  readonly #router: Router;
  /** One change of the machine at a time. */
  readonly #mutex = new Mutex();
  readonly #attached = new AttachedNetworks();
  #shared: Shared | null = null;

  constructor(options: NetnsNetworkOptions) {
    this.bounds = options.bounds;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#lookUp = options.lookUp;
    this.#names = createNetworkNames(options.dataDirectory);
    this.#system = createNetworkSystem(options.runner);
    this.#router = new Router(this.#system, this.#names, options.bounds);
  }

  async open(containers: readonly string[], call: Call): Promise<void> {
    await this.#mutex.run(async () => {
      const unowned = this.#found().filter((container) => !containers.includes(container));
      for (const container of unowned) await this.#detach(container, call);
      if (this.#found().length > 0) await this.#raise(call);
      else if (existsSync(join(NETNS_DIRECTORY, this.#names.router))) await this.#lower(call);
    });
  }

  async attach(container: string, policy: NetworkPolicy, call: Call): Promise<Attachment> {
    return await this.#mutex.run(async () => {
      const { block } = await this.#raise(call);
      const slot = this.#attached.takeSlot(block);
      const netns = this.#names.netns(container);
      const attached = new Attached(container, { block, slot, policy: { ...DENY_ALL, bounds: this.bounds } });
      await this.#system.ip(null, [`netns add ${netns}`], call);
      try {
        this.#attached.add(attached);
        // The rules are there before the link is: a sandbox never has a link without them.
        await this.#enforce(attached, policy, call);
        await this.#router.link(container, { block, slot }, call);
      } catch (thrown) {
        await this.#detach(container, { signal: AbortSignal.timeout(NFT_TIMEOUT_MS) });
        throw thrown;
      }
      return { netnsPath: join(NETNS_DIRECTORY, netns), nameserver: block.machine };
    });
  }

  isAttached(container: string): boolean {
    return existsSync(join(NETNS_DIRECTORY, this.#names.netns(container)));
  }

  async update(container: string, policy: NetworkPolicy, call: Call): Promise<void> {
    await this.#mutex.run(async () => {
      if (!this.isAttached(container)) return;
      await this.#raise(call);
      const attached = this.#attached.of(container);
      if (attached === undefined) throw new SandboxError("RUNTIME_UNAVAILABLE", "the sandbox has lost its network");
      await this.#enforce(attached, policy, call);
    });
  }

  async denials(container: string, call: Call): Promise<readonly Denial[]> {
    const attached = this.#attached.of(container);
    if (attached === undefined) return [];
    const args = ["list", "set", "inet", "tbx", `d_${container}`];
    const output = await this.#system.nftJson(this.#names.router, args, call);
    const policy = attached.policy ?? { ...DENY_ALL, bounds: this.bounds };
    return attached.denials.list(output, { policy, nowMs: this.#clock.nowMs() });
  }

  async traffic(container: string, call: Call): Promise<Traffic> {
    return this.isAttached(container) ? await this.#router.traffic(container, call) : NO_TRAFFIC;
  }

  async mend(call: Call): Promise<void> {
    await this.#mutex.run(async () => {
      const shared = this.#shared;
      if (shared === null || (await this.#router.isRuled(call))) return;
      this.#log?.error(
        "the rules of the sandboxes' network were removed; no sandbox had a network until they are set again",
      );
      await this.#router.rule(shared.block, call);
      for (const attached of this.#attached.all()) await this.#enforce(attached, attached.policy ?? DENY_ALL, call);
      await this.#router.openMachine(shared.block, shared.resolver.ports, call);
    });
  }

  async detach(container: string, call: Call): Promise<void> {
    await this.#mutex.run(() => this.#detach(container, call));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#mutex.idle();
    const resolver = this.#shared?.resolver;
    this.#shared = null;
    await resolver?.[Symbol.asyncDispose]();
  }

  /** The containers of this host that have a namespace. */
  #found(): readonly string[] {
    return listed(NETNS_DIRECTORY).flatMap((netns) => this.#names.containerOf(netns) ?? []);
  }

  /** Starts router and resolver, or takes up those of an earlier service. */
  async #raise(call: Call): Promise<Shared> {
    if (this.#shared !== null) return this.#shared;
    const there = await this.#router.find(call);
    const block = there ?? (await this.#router.make(call));
    if (there !== undefined) {
      for (const [name, slot] of await this.#router.links(block, call)) await this.#adopt(block, { name, slot }, call);
      // The rules of an earlier service may be of other settings.
      await this.#router.rule(block, call);
    }
    const { machine: address } = block;
    const askerOf = (source: string): Asker | undefined => this.#askerOf(source);
    const resolver = await startResolver({ address, lookUp: this.#lookUp, askerOf, clock: this.#clock });
    try {
      await this.#router.openMachine(block, resolver.ports, call);
    } catch (thrown) {
      await resolver[Symbol.asyncDispose]();
      throw thrown;
    }
    this.#shared = { block, resolver };
    return this.#shared;
  }

  /** Takes up a link of an earlier service. One whose namespace is gone is left from a removal that was cut off. */
  async #adopt(
    block: AddressBlock,
    { name, slot }: { readonly name: string; readonly slot: number },
    call: Call,
  ): Promise<void> {
    const container = this.#found().find((id) => linkOf(id) === name);
    if (container === undefined) await this.#system.remove(["ip", "-n", this.#names.router, "link", "del", name], call);
    else this.#attached.add(new Attached(container, { block, slot, policy: null }));
  }

  async #lower(call: Call): Promise<void> {
    const resolver = this.#shared?.resolver;
    this.#shared = null;
    this.#attached.clear();
    await resolver?.[Symbol.asyncDispose]();
    await this.#router.remove(call);
  }

  async #enforce(attached: Attached, wanted: NetworkPolicy, call: Call): Promise<void> {
    const { block } = await this.#raise(call);
    const policy = { ...wanted, bounds: this.bounds };
    const pins = attached.policy === null ? null : attached.pinsUnder(policy, this.#clock.nowMs());
    const { container, link } = attached;
    const rules = renderSession({ container, link, policy, nameserver: block.machine, pins });
    await this.#system.nft(this.#names.router, rules, call);
    attached.policy = policy;
  }

  async #detach(container: string, call: Call): Promise<void> {
    if (!this.isAttached(container) && this.#attached.of(container) === undefined) return;
    await this.#router.unlink(container, call);
    this.#attached.remove(container);
    if (this.#found().length === 0) {
      await this.#lower(call);
      return;
    }
    await this.#system.nft(this.#names.router, renderRemoval(container), call).catch((err: unknown) => {
      // Rules without a link match nothing.
      this.#log?.warn({ err, container }, "the rules of a network that is gone could not be removed");
    });
  }

  #askerOf(source: string): Asker | undefined {
    const attached = this.#attached.ofAddress(source);
    const policy = attached?.policy;
    if (attached === undefined || policy === undefined || policy === null) return undefined;
    return {
      policy,
      pin: (name, addresses) => this.#pin(attached, { name, addresses, policy }),
      refused: (destination, rule) => {
        attached.denials.addName({ atMs: this.#clock.nowMs(), destination, rule });
      },
    };
  }

  /** Opens the addresses that an allowed name leads to. */
  async #pin(
    attached: Attached,
    asked: { readonly name: string; readonly addresses: readonly NameAddress[]; readonly policy: PolicyInForce },
  ): Promise<void> {
    // Without a list of names every public address is open already.
    if (asked.policy.allowList.length === 0) return;
    const nowMs = this.#clock.nowMs();
    attached.assertRoomForPins(asked.addresses.length, nowMs);
    const pins = asked.addresses.map(({ address, ttl }) => ({
      address,
      seconds: Math.max(ttl, MIN_PIN_S) + PIN_GRACE_S,
    }));
    await this.#mutex.run(async () => {
      if (attached.policy !== asked.policy) throw new Error("the policy has changed meanwhile");
      const call = { signal: AbortSignal.timeout(NFT_TIMEOUT_MS) };
      await this.#system.nft(this.#names.router, renderPins(attached.container, pins), call);
      attached.addPins(asked.name, pins, nowMs);
    });
  }
}

function listed(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
