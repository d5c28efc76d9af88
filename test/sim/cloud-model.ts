import { SandboxError } from "@turnbox/core";
import {
  type LaunchSpec,
  type Machine,
  type MachineQuery,
  type MachineState,
  matchesQuery,
  type Tags,
} from "../../packages/orchestrator/src/provisioner/provisioner.ts";
import type { HostModel } from "./host-model.ts";
import { EPOCH_MS } from "./sim-process.ts";
import type { SimWorld } from "./world.ts";

export interface ModelMachine {
  readonly instanceId: string;
  readonly tags: Tags;
  readonly image: string;
  readonly launchedAtMs: number;
  readonly host: HostModel;
  state: MachineState;
  url: string | undefined;
  interruption: Machine["interruption"];
  /** Whether its host does not come up by itself. */
  isDead: boolean;
  /** Raised by each change of state, so that a change that was planned before it does not take place. */
  life: number;
}

/** Is told of every change at the moment it takes place, with who asked for it. */
export interface CloudWatch {
  launched(machine: ModelMachine): void;
  started(machine: ModelMachine): void;
  stopAccepted(machine: ModelMachine, by: string): void;
  terminateAccepted(machine: ModelMachine, by: string): void;
  gone(machine: ModelMachine): void;
}

const BOOT_MS = [20_000, 60_000] as const;
const SLOW_BOOT_MS = [120_000, 500_000] as const;
const ALLOCATE_MS = [1000, 10_000] as const;
const SHUTDOWN_MS = [2000, 30_000] as const;
/** For how long a machine that has ended is still listed as such. */
const REMEMBER_MS = 3_600_000;

/** A cloud: machines that are made, boot or do not, stop, start, are taken back, and end. */
export class CloudModel {
  readonly machines = new Map<string, ModelMachine>();
  /** What new machines are made from. */
  image = "image-1";
  readonly #world: SimWorld;
  readonly #watch: CloudWatch;
  readonly #newHost: (instanceId: string) => HostModel;
  #urls = 0;
  /** What a list that lags behind says. */
  #oldList: readonly Machine[] = [];

  constructor(options: {
    readonly world: SimWorld;
    readonly watch: CloudWatch;
    readonly newHost: (instanceId: string) => HostModel;
  }) {
    this.#world = options.world;
    this.#watch = options.watch;
    this.#newHost = options.newHost;
  }

  launch(spec: LaunchSpec & { readonly image: string }): Machine {
    const there = this.machines.get(spec.instanceId);
    if (there !== undefined) return describe(there);
    const machine: ModelMachine = {
      instanceId: spec.instanceId,
      tags: spec.tags,
      image: spec.image,
      launchedAtMs: this.#wallMs(),
      host: this.#newHost(spec.instanceId),
      state: "pending",
      url: undefined,
      interruption: undefined,
      isDead: false,
      life: 0,
    };
    this.machines.set(spec.instanceId, machine);
    this.#watch.launched(machine);
    this.#bringUp(machine);
    return describe(machine);
  }

  /** A machine that belongs to somebody else: it runs, and nobody of ours has to do with it. */
  addForeign(instanceId: string, tags: Tags): void {
    const machine: ModelMachine = {
      instanceId,
      tags,
      image: "",
      launchedAtMs: this.#wallMs(),
      host: this.#newHost(instanceId),
      state: "running",
      url: this.#newUrl(instanceId),
      interruption: undefined,
      isDead: false,
      life: 0,
    };
    machine.host.start();
    this.machines.set(instanceId, machine);
  }

  list(query: MachineQuery): readonly Machine[] {
    const all = [...this.machines.values()].map(describe);
    const { chance, weather } = this.#world;
    let seen: readonly Machine[] = all;
    if (chance.happens(weather.emptyList)) seen = [];
    else if (chance.happens(weather.staleList)) seen = this.#oldList;
    else {
      if (chance.happens(0.2)) this.#oldList = all;
      if (chance.happens(weather.partialList)) seen = all.filter(() => chance.happens(0.6));
    }
    return seen
      .filter((machine) => matchesQuery(machine, query))
      .sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
  }

  describe(instanceId: string): Machine {
    const machine = this.#find(instanceId);
    const isYoung = this.#wallMs() - machine.launchedAtMs < 30_000;
    if (isYoung && this.#world.chance.happens(this.#world.weather.partialList)) throw notFound(instanceId);
    return describe(machine);
  }

  terminate(instanceId: string, by: string): void {
    const machine = this.machines.get(instanceId);
    if (machine === undefined || isEnding(machine)) return;
    this.#watch.terminateAccepted(machine, by);
    this.#bringDown(machine, "terminating", "terminated");
  }

  stop(instanceId: string, by: string): Machine {
    const machine = this.#find(instanceId);
    if (machine.state === "running" || machine.state === "pending") {
      this.#watch.stopAccepted(machine, by);
      this.#bringDown(machine, "stopping", "stopped");
    }
    return describe(machine);
  }

  start(instanceId: string): Machine {
    const machine = this.#find(instanceId);
    if (machine.state === "stopping") throw new SandboxError("INVALID_STATE", "the machine is still stopping");
    if (isEnding(machine)) throw notFound(instanceId);
    if (machine.state === "stopped") {
      machine.state = "pending";
      machine.life += 1;
      this.#watch.started(machine);
      this.#bringUp(machine);
    }
    return describe(machine);
  }

  /** The cloud takes a machine back: it says so, and two minutes later does it. */
  interrupt(machine: ModelMachine, action: "stop" | "terminate"): void {
    if (machine.state !== "running" || machine.interruption !== undefined) return;
    const noticeMs = 120_000;
    machine.interruption = { atMs: this.#wallMs() + noticeMs, action };
    const { life } = machine;
    this.#world.timeline.after(noticeMs, () => {
      machine.interruption = undefined;
      if (machine.life !== life) return;
      if (action === "stop") this.#bringDown(machine, "stopping", "stopped");
      else this.#bringDown(machine, "terminating", "terminated");
    });
  }

  /** The machine stops without a word before. */
  powerOff(machine: ModelMachine): void {
    if (machine.state === "running") this.#bringDown(machine, "stopping", "stopped");
  }

  #bringUp(machine: ModelMachine): void {
    const { timeline, chance, weather } = this.#world;
    const { life } = machine;
    machine.isDead = chance.happens(weather.deadBoot);
    const [leastMs, mostMs] = chance.happens(weather.slowBoot) ? SLOW_BOOT_MS : BOOT_MS;
    const bootMs = chance.between(leastMs, mostMs);
    timeline.after(chance.between(...ALLOCATE_MS), () => {
      if (machine.life !== life) return;
      machine.state = "running";
      machine.url = this.#newUrl(machine.instanceId);
      timeline.after(bootMs, () => {
        if (machine.life === life && !machine.isDead) machine.host.start();
      });
    });
  }

  #bringDown(machine: ModelMachine, by: "stopping" | "terminating", to: "stopped" | "terminated"): void {
    const { timeline, chance, trace } = this.#world;
    machine.state = by;
    machine.life += 1;
    const { life } = machine;
    timeline.after(chance.between(...SHUTDOWN_MS), () => {
      if (machine.life !== life) return;
      machine.state = to;
      machine.url = undefined;
      trace.add(`cloud: ${machine.instanceId} is ${to}`);
      if (to === "stopped") {
        machine.host.end();
        return;
      }
      machine.host.lose();
      this.#watch.gone(machine);
      timeline.after(REMEMBER_MS, () => this.machines.delete(machine.instanceId));
    });
  }

  #newUrl(instanceId: string): string {
    this.#urls += 1;
    return `http://${instanceId}.boot${String(this.#urls)}.sim:9100`;
  }

  #find(instanceId: string): ModelMachine {
    const machine = this.machines.get(instanceId);
    if (machine === undefined) throw notFound(instanceId);
    return machine;
  }

  #wallMs(): number {
    return EPOCH_MS + this.#world.timeline.nowMs;
  }
}

export const isEnding = ({ state }: ModelMachine): boolean => state === "terminating" || state === "terminated";

const notFound = (instanceId: string): SandboxError =>
  new SandboxError("INSTANCE_NOT_FOUND", `there is no machine ${instanceId}`);

function describe(machine: ModelMachine): Machine {
  const { instanceId, state, url, tags, launchedAtMs, image, interruption } = machine;
  return { instanceId, state, url, tags, launchedAtMs, image, interruption, problem: undefined };
}
