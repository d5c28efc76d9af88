import { DescribeInstancesCommand, type Filter, type Instance } from "@aws-sdk/client-ec2";
import { invalidArgument, type SandboxError } from "@turnbox/core";
import type { Interruption, Machine, Tags } from "../provisioner.ts";
import { sandboxErrorOf } from "./ec2-error.ts";
import { type Ec2Options, INSTANCE_TAG } from "./ec2-options.ts";
import { readInterruptions } from "./interruptions.ts";
import { type Seen, seenOf } from "./machine-of.ts";
import { allPages } from "./pages.ts";
import type { Ec2Cache } from "./ec2-cache.ts";

interface Call {
  readonly signal: AbortSignal;
}

/** What EC2 and the cache know of the machines of the fleet. */
export interface FleetListing {
  readonly machines: readonly Machine[];
  /** EC2's ids of machines that it shows as alive although their end was accepted. */
  readonly revived: readonly string[];
}

/** Reads what EC2 says about the fleet's machines. Every question carries the fleet's marks. */
export class Ec2Fleet {
  readonly #options: Ec2Options;
  readonly #cache: Ec2Cache;
  #interruptions: ReadonlyMap<string, Interruption> = new Map();

  constructor(options: Ec2Options, cache: Ec2Cache) {
    if (Object.keys(options.tags).length === 0) {
      throw invalidArgument("tags", "must name the fleet: no tags would mean every machine");
    }
    this.#options = options;
    this.#cache = cache;
  }

  /** All machines that carry the tags as well as the fleet's own. */
  async list(tags: Tags, call: Call): Promise<FleetListing> {
    const instances = await this.#instances(this.#filters(tags), call);
    const groups = this.#byInstance(instances);
    if (groups.size > 0) await this.#lookForInterruptions(call);
    const shown = [...groups.values()].map((group) => this.#take(group));
    const hidden = this.#cache
      .unseen(new Set(groups.keys()))
      .filter((machine) => Object.entries(tags).every(([key, value]) => machine.tags[key] === value));
    return {
      machines: [...shown.map(({ machine }) => machine), ...hidden],
      revived: shown.flatMap(({ revived }) => revived),
    };
  }

  /** One machine, or undefined if there is none. */
  async find(instanceId: string, call: Call): Promise<Machine | undefined> {
    const group = await this.seen(instanceId, call);
    return group.length === 0 ? this.#cache.unseenOne(instanceId) : this.#take(group).machine;
  }

  /** All that EC2 shows under an id of the fleet, the one that counts first. */
  async seen(instanceId: string, call: Call): Promise<readonly Seen[]> {
    const filters = this.#filters({ [INSTANCE_TAG]: instanceId });
    return this.#byInstance(await this.#instances(filters, call)).get(instanceId) ?? [];
  }

  /** What EC2 itself says about the machine of an id, if it shows one that has not ended. */
  async findInstance(instanceId: string, call: Call): Promise<Instance | undefined> {
    const instances = await this.#instances(this.#filters({ [INSTANCE_TAG]: instanceId }), call);
    return instances.find(({ State: state }) => state?.Name !== "terminated" && state?.Name !== "shutting-down");
  }

  /** EC2's answer to a launch, as the machine it is. */
  take(instance: Instance): Machine | undefined {
    const seen = seenOf(instance, this.#options);
    return seen === undefined ? undefined : this.#take([seen]).machine;
  }

  #take(group: readonly Seen[]): { readonly machine: Machine; readonly revived: readonly string[] } {
    const [first, ...others] = group as [Seen, ...Seen[]];
    const alive = others.filter(({ machine }) => machine.state !== "terminated").map(({ ec2Id }) => ec2Id);
    const told = this.#cache.see(first);
    const machine = {
      ...told,
      interruption: this.#interruptions.get(first.ec2Id),
      problem: alive.length === 0 ? told.problem : `EC2 also has ${alive.join(", ")} under this id`,
    };
    return { machine, revived: this.#cache.isRevived(first) ? [first.ec2Id] : [] };
  }

  /** By the fleet's ids; if one has several machines, the one that lives and was first comes first. */
  #byInstance(instances: readonly Instance[]): ReadonlyMap<string, readonly Seen[]> {
    const seen = instances.flatMap((instance) => seenOf(instance, this.#options) ?? []);
    const groups = Map.groupBy(seen, ({ machine }) => machine.instanceId);
    for (const group of groups.values()) group.sort(byPrecedence);
    return groups;
  }

  #filters(tags: Tags): readonly Filter[] {
    const all = Object.entries({ ...tags, ...this.#options.tags });
    return [
      ...all.map(([key, value]) => ({ Name: `tag:${key}`, Values: [value] })),
      { Name: "tag-key", Values: [INSTANCE_TAG] },
    ];
  }

  async #instances(filters: readonly Filter[], { signal }: Call): Promise<readonly Instance[]> {
    try {
      return await allPages(
        (NextToken) =>
          this.#options.client.send(
            new DescribeInstancesCommand({ Filters: [...filters], MaxResults: 1000, NextToken }),
            { abortSignal: signal },
          ),
        (page) => (page.Reservations ?? []).flatMap((reservation) => reservation.Instances ?? []),
      );
    } catch (error) {
      signal.throwIfAborted();
      throw sandboxErrorOf(error, "list machines");
    }
  }

  /** A look that fails keeps what the one before found: the list of machines is worth more than its notices. */
  async #lookForInterruptions(call: Call): Promise<void> {
    const { client, hardware, logger, tags } = this.#options;
    const filters = Object.entries(tags).map(([key, value]) => ({ Name: `tag:${key}`, Values: [value] }));
    const hasSpot = hardware.spot !== "off";
    try {
      this.#interruptions = await readInterruptions({ client, filters, hasSpot }, call);
    } catch (error) {
      call.signal.throwIfAborted();
      const err: SandboxError = sandboxErrorOf(error, "tell what it takes back");
      logger.warn({ err }, "notices of interruptions could not be read");
    }
  }
}

function byPrecedence(a: Seen, b: Seen): number {
  const isOver = ({ machine }: Seen): number => (machine.state === "terminated" ? 1 : 0);
  return isOver(a) - isOver(b) || a.machine.launchedAtMs - b.machine.launchedAtMs || (a.ec2Id < b.ec2Id ? -1 : 1);
}
