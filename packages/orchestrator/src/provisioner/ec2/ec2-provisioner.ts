import {
  type Instance,
  StartInstancesCommand,
  StopInstancesCommand,
  TerminateInstancesCommand,
} from "@aws-sdk/client-ec2";
import { invalidArgument, KeyedMutex, raceSignal, SandboxError } from "@turnbox/core";
import { checkLaunchSpec, checkMachineQuery } from "../launch-spec.ts";
import {
  type LaunchSpec,
  type Machine,
  type MachineState,
  matchesQuery,
  type Provisioner,
  type Tags,
} from "../provisioner.ts";
import { backoffMs } from "./backoff.ts";
import { classify, sandboxErrorOf } from "./ec2-error.ts";
import { Ec2Fleet } from "./ec2-fleet.ts";
import { type Ec2Options, GRACE_MS, LAUNCH_PATIENCE_MS } from "./ec2-options.ts";
import { type LaunchProgress, launchMachine } from "./launch-machine.ts";
import { Ec2Cache } from "./ec2-cache.ts";

interface Call {
  readonly signal: AbortSignal;
}

/**
 * Machines of EC2. They belong to the fleet whose tags they carry and live on when this process ends; the one after it
 * finds them by their tags. EC2 is consistent only in the end, so its answers are read together with what is known.
 */
export function createEc2Provisioner(options: Ec2Options): Provisioner {
  return new Ec2Provisioner(options);
}

class Ec2Provisioner implements Provisioner {
  readonly kind = "ec2";
  readonly capabilities: Provisioner["capabilities"];
  readonly image: string;
  readonly #options: Ec2Options;
  readonly #cache: Ec2Cache;
  readonly #fleet: Ec2Fleet;
  readonly #mutex = new KeyedMutex();
  readonly #launching = new Map<string, Promise<Machine>>();
  readonly #progress = new Map<string, LaunchProgress>();
  readonly #lifetime = new AbortController();

  constructor(options: Ec2Options) {
    checkHardware(options);
    this.#options = options;
    this.#cache = new Ec2Cache({ clock: options.clock, graceMs: options.graceMs ?? GRACE_MS });
    this.#fleet = new Ec2Fleet(options, this.#cache);
    this.image = options.hardware.image;
    this.capabilities = {
      launch: "supported",
      stopStart: options.hardware.spot === "off" ? "supported" : "unsupported",
    };
  }

  async launch(spec: LaunchSpec, { signal }: Call): Promise<Machine> {
    signal.throwIfAborted();
    checkLaunchSpec(spec);
    const { instanceId } = spec;
    const tags = this.#merged(spec.tags);
    if (tags === undefined) throw invalidArgument("tags", "must not contradict those of the fleet");
    const joined =
      this.#launching.get(instanceId) ?? this.#mutex.run(instanceId, () => this.#launch({ ...spec, tags }));
    this.#launching.set(instanceId, joined);
    const forget = (): void => {
      if (this.#launching.get(instanceId) === joined) this.#launching.delete(instanceId);
    };
    joined.then(forget, forget);
    return await raceSignal(joined, signal);
  }

  async list(query: Parameters<Provisioner["list"]>[0], call: Call): Promise<readonly Machine[]> {
    call.signal.throwIfAborted();
    checkMachineQuery(query);
    const tags = this.#merged(query.tags);
    if (tags === undefined) return [];
    const { machines, revived } = await raceSignal(this.#fleet.list(tags, call), call.signal);
    for (const ec2Id of revived) await this.#endAgain(ec2Id, call);
    return machines
      .filter((machine) => matchesQuery(machine, query))
      .sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
  }

  async describe(instanceId: string, call: Call): Promise<Machine> {
    call.signal.throwIfAborted();
    const machine = await raceSignal(this.#fleet.find(instanceId, call), call.signal);
    if (machine === undefined) throw new SandboxError("INSTANCE_NOT_FOUND", `there is no instance ${instanceId}`);
    return machine;
  }

  async terminate(instanceId: string, call: Call): Promise<void> {
    call.signal.throwIfAborted();
    await raceSignal(
      this.#mutex.run(instanceId, () => this.#terminate(instanceId, call)),
      call.signal,
    );
  }

  async stop(instanceId: string, call: Call): Promise<Machine> {
    return await this.#switch(instanceId, "stopping", call);
  }

  async start(instanceId: string, call: Call): Promise<Machine> {
    return await this.#switch(instanceId, "pending", call);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#lifetime.abort(new SandboxError("SHUTTING_DOWN", "the orchestrator is stopping"));
    await this.#mutex.idle();
    this.#options.client.destroy();
  }

  /** The fleet's tags and those of a call; undefined if they contradict each other. */
  #merged(tags: Tags): Tags | undefined {
    const own = this.#options.tags;
    return Object.entries(tags).some(([key, value]) => key in own && own[key] !== value)
      ? undefined
      : { ...tags, ...own };
  }

  async #launch(spec: LaunchSpec): Promise<Machine> {
    const { logger } = this.#options;
    const { instanceId } = spec;
    const there = await this.#fleet.find(instanceId, { signal: this.#lifetime.signal });
    if (there !== undefined) return mustLive(there);
    const made = await this.#make(spec);
    const machine = this.#fleet.take(made);
    if (machine === undefined) throw new SandboxError("INTERNAL", "EC2 made a machine without the tags it was given");
    logger.info({ instanceId, ec2Id: made.InstanceId, type: made.InstanceType }, "a machine was made");
    return mustLive(machine);
  }

  async #make(spec: LaunchSpec): Promise<Instance> {
    const { hardware, launchPatienceMs } = this.#options;
    const { instanceId } = spec;
    const call = { signal: this.#lifetime.signal };
    const progress = this.#progress.get(instanceId) ?? { offer: 0, result: "none" as const };
    this.#progress.set(instanceId, progress);
    const wish = {
      instanceId,
      tags: spec.tags,
      image: spec.image ?? hardware.image,
      userData: this.#options.userDataFor(instanceId),
    };
    try {
      const made = await launchMachine(wish, progress, {
        ...this.#options,
        ...call,
        patienceMs: launchPatienceMs ?? LAUNCH_PATIENCE_MS,
        find: () => this.#fleet.findInstance(instanceId, call),
      });
      progress.result = "none";
      return made;
    } finally {
      if (progress.result === "none") this.#progress.delete(instanceId);
    }
  }

  async #terminate(instanceId: string, call: Call): Promise<void> {
    this.#progress.delete(instanceId);
    const shown = (await this.#fleet.seen(instanceId, call)).filter(({ machine }) => machine.state !== "terminated");
    const known = this.#cache.ec2IdOf(instanceId);
    const ec2Ids = new Set([...shown.map(({ ec2Id }) => ec2Id), ...(known === undefined ? [] : [known])]);
    if (shown[0] !== undefined) this.#cache.see(shown[0]);
    for (const ec2Id of ec2Ids) {
      const answer = await this.#untilKnown(instanceId, call, async () => {
        await this.#options.client.send(new TerminateInstancesCommand({ InstanceIds: [ec2Id] }), {
          abortSignal: call.signal,
        });
      });
      if (answer === "done") this.#cache.ordered(instanceId, "terminating");
      else this.#cache.endedUnseen(instanceId);
    }
    if (ec2Ids.size === 0) this.#cache.endedUnseen(instanceId);
  }

  /** What EC2 shows as alive after it accepted the end is asked for again; the next look does so too. */
  async #endAgain(ec2Id: string, { signal }: Call): Promise<void> {
    try {
      await this.#options.client.send(new TerminateInstancesCommand({ InstanceIds: [ec2Id] }), { abortSignal: signal });
    } catch (error) {
      signal.throwIfAborted();
      const err = sandboxErrorOf(error, "end a machine");
      this.#options.logger.warn({ ec2Id, err }, "a machine that should have ended could not be ended again");
    }
  }

  async #switch(instanceId: string, to: "stopping" | "pending", call: Call): Promise<Machine> {
    call.signal.throwIfAborted();
    if (this.capabilities.stopStart === "unsupported") {
      throw new SandboxError("UNIMPLEMENTED", "spot machines cannot be stopped and started");
    }
    return await raceSignal(
      this.#mutex.run(instanceId, () => this.#switchAlone(instanceId, to, call)),
      call.signal,
    );
  }

  async #switchAlone(instanceId: string, to: "stopping" | "pending", call: Call): Promise<Machine> {
    const { client } = this.#options;
    const already: readonly MachineState[] = to === "pending" ? ["pending", "running"] : ["stopping", "stopped"];
    const machine = mustLive(
      to === "pending" ? await this.#settled(instanceId, call) : await this.describe(instanceId, call),
    );
    const ec2Id = this.#cache.ec2IdOf(instanceId);
    if (already.includes(machine.state) || ec2Id === undefined) return machine;
    const answer = await this.#untilKnown(instanceId, call, async () => {
      const input = { InstanceIds: [ec2Id] };
      const options = { abortSignal: call.signal };
      if (to === "pending") await client.send(new StartInstancesCommand(input), options);
      else await client.send(new StopInstancesCommand(input), options);
    });
    if (answer === "gone") throw new SandboxError("INSTANCE_NOT_FOUND", `EC2 does not know ${instanceId} any more`);
    return this.#cache.ordered(instanceId, to) ?? machine;
  }

  /** The machine once it is no longer on its way to a stop: before that EC2 does not start it. */
  async #settled(instanceId: string, call: Call): Promise<Machine> {
    for (let looks = 1; ; looks += 1) {
      const machine = await this.describe(instanceId, call);
      if (machine.state !== "stopping") return machine;
      await this.#options.clock.sleep(backoffMs(looks, this.#options.random), call);
    }
  }

  /** Asks again while EC2 may not know the machine yet; one that it does not know after that is gone. */
  async #untilKnown(instanceId: string, { signal }: Call, ask: () => Promise<void>): Promise<"done" | "gone"> {
    const { clock, random } = this.#options;
    for (let tries = 1; ; tries += 1) {
      try {
        await ask();
        return "done";
      } catch (error) {
        signal.throwIfAborted();
        if (classify(error) !== "not_found") throw sandboxErrorOf(error, "change a machine");
        if (!this.#cache.isFresh(instanceId)) return "gone";
      }
      await clock.sleep(backoffMs(tries, random), { signal });
    }
  }
}

function mustLive(machine: Machine): Machine {
  if (machine.state !== "terminating" && machine.state !== "terminated") return machine;
  throw new SandboxError("INVALID_STATE", `instance ${machine.instanceId} has ended; a new machine needs a new id`);
}

function checkHardware({ hardware }: Ec2Options): void {
  const { image, instanceTypes, launchTemplate } = hardware;
  if (launchTemplate === null && (image === "" || instanceTypes.length === 0)) {
    throw new SandboxError("CONFIG_INVALID", "EC2 needs an image and an instance type, or a launch template");
  }
}
