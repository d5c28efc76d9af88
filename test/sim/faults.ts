import type { CloudModel, ModelMachine } from "./cloud-model.ts";
import { callOrchestrator, type Serving } from "./fleet-gate.ts";
import type { CutKind, Network } from "./network.ts";
import type { Fault, Scenario } from "./scenario.ts";
import { CALM, type Weather } from "./weather.ts";
import type { SimWorld } from "./world.ts";

/** An orchestrator's place: one process after another runs there. */
export interface Seat {
  readonly index: number;
  kill(restartAfterMs: number): void;
  pause(forMs: number): void;
}

export interface FaultsOptions {
  readonly world: SimWorld;
  readonly network: Network;
  readonly cloud: CloudModel;
  readonly seats: readonly Seat[];
  readonly anyone: () => Serving | undefined;
  readonly isOwn: (machine: ModelMachine) => boolean;
  readonly stopStart: Scenario["stopStart"];
}

const WEATHER: Readonly<Partial<Record<Fault, (strength: number) => Partial<Weather>>>> = {
  bad_network: (strength) => ({
    lostRequest: 0.2 * strength,
    lostAnswer: 0.2 * strength,
    duplicate: 0.2 * strength,
    slow: 0.3 * strength,
    failedCreate: 0.1 * strength,
  }),
  bad_cloud: (strength) => ({ cloudRefusal: 0.6 * strength, cloudUnknown: 0.4 * strength }),
  bad_lists: (strength) => ({ staleList: 0.5 * strength, emptyList: 0.5 * strength, partialList: 0.5 * strength }),
  bad_boots: (strength) => ({ deadBoot: 0.6 * strength, slowBoot: 0.8 * strength }),
  bad_store: (strength) => ({ storeRefusal: 0.15 * strength, storeUnknown: 0.15 * strength }),
};

/** Makes one fault happen, to something picked at random. What ends by itself is planned to. */
export class Faults {
  readonly #options: FaultsOptions;

  constructor(options: FaultsOptions) {
    this.#options = options;
  }

  happen(fault: Fault): void {
    const { world } = this.#options;
    const strong = WEATHER[fault];
    if (strong !== undefined) {
      this.#turn(fault, strong(world.chance.next()));
      return;
    }
    if (fault.startsWith("orchestrator_")) this.#strikeOrchestrator(fault);
    else if (fault.startsWith("operator_")) this.#operate(fault);
    else this.#strikeMachine(fault);
  }

  #turn(fault: Fault, change: Partial<Weather>): void {
    const { world } = this.#options;
    world.trace.add(`fault: ${fault}`);
    world.weather = { ...world.weather, ...change };
    world.timeline.after(world.chance.between(10_000, 180_000), () => {
      const keys = Object.keys(change) as (keyof Weather)[];
      world.weather = { ...world.weather, ...Object.fromEntries(keys.map((key) => [key, CALM[key]])) };
    });
  }

  #strikeOrchestrator(fault: Fault): void {
    const { world, seats } = this.#options;
    const seat = world.chance.pick(seats);
    if (seat === undefined) return;
    world.trace.add(`fault: ${fault} ${String(seat.index)}`);
    if (fault === "orchestrator_kill") seat.kill(world.chance.between(500, 40_000));
    else seat.pause(world.chance.between(2000, 90_000));
  }

  #strikeMachine(fault: Fault): void {
    const { world, cloud, seats } = this.#options;
    const { chance, trace } = world;
    const machine = chance.pick([...cloud.machines.values()].filter(this.#options.isOwn));
    const seat = chance.pick(seats);
    if (machine === undefined || seat === undefined) return;
    const { instanceId } = machine;
    trace.add(`fault: ${fault} ${instanceId}`);
    const forMs = chance.happens(0.3) ? chance.between(120_000, 600_000) : chance.between(3000, 60_000);
    const kind = chance.happens(0.5) ? "refused" : "silent";
    this.#cutOff(instanceId, { partition: [seat], isolation: seats }[fault as string] ?? [], { kind, forMs });
    if (fault === "illness") this.#sicken(machine);
    if (fault.startsWith("host_")) this.#restart(machine, fault === "host_hang" ? forMs : chance.between(500, 30_000));
    if (fault === "interruption" || fault === "power_off") this.#takeAway(machine, fault);
  }

  #cutOff(instanceId: string, from: readonly Seat[], how: { readonly kind: CutKind; readonly forMs: number }): void {
    for (const { index } of from) this.#options.network.cut({ orchestrator: index, instanceId }, how.kind, how.forMs);
  }

  #sicken({ host }: ModelMachine): void {
    const { chance, timeline } = this.#options.world;
    host.health = chance.happens(0.7) ? "unhealthy" : "degraded";
    timeline.after(chance.between(60_000, 400_000), () => {
      host.health = "healthy";
    });
  }

  /** What nobody can start again is not stopped either. */
  #takeAway(machine: ModelMachine, fault: "interruption" | "power_off"): void {
    const { world, cloud, stopStart } = this.#options;
    const canStart = stopStart === "supported";
    if (fault === "interruption")
      cloud.interrupt(machine, canStart && world.chance.happens(0.5) ? "stop" : "terminate");
    else if (canStart) cloud.powerOff(machine);
  }

  #restart(machine: ModelMachine, afterMs: number): void {
    if (!machine.host.isUp) return;
    const { life } = machine;
    machine.host.end();
    this.#options.world.timeline.after(afterMs, () => {
      if (machine.life === life) machine.host.start();
    });
  }

  #operate(fault: Fault): void {
    const { world, cloud, anyone } = this.#options;
    const { chance } = world;
    const serving = anyone();
    const machine = chance.pick([...cloud.machines.values()].filter(this.#options.isOwn));
    if (serving === undefined || machine === undefined) return;
    const { instanceId } = machine;
    world.trace.add(`fault: ${fault} ${instanceId} by ${serving.process.name}`);
    const ask = (
      work: (to: Serving["operations"], call: { readonly signal: AbortSignal }) => Promise<unknown>,
    ): void => {
      callOrchestrator(world, serving, {
        timeoutMs: 10_000,
        work: ({ operations }, call) => work(operations, call),
      }).catch(() => undefined);
    };
    const timeoutMs = chance.happens(0.5) ? undefined : chance.between(0, 60_000);
    if (fault === "operator_drain") ask((to, call) => to.drain({ instanceId, timeoutMs, sessions: "keep" }, call));
    if (fault === "operator_discard") ask((to, call) => to.drain({ instanceId, timeoutMs, sessions: "discard" }, call));
    if (fault === "operator_refresh") {
      cloud.image = `image-${String(chance.whole(1, 3))}`;
      ask((to, call) => to.refresh({ image: "" }, call));
    }
    if (fault !== "operator_cordon") return;
    if (chance.happens(0.5)) ask((to, call) => to.cordon(instanceId, call));
    else ask((to, call) => to.uncordon(instanceId, call));
  }
}
