import type { HostConnection } from "../../packages/orchestrator/src/control/host-connection.ts";
import { fleetTags } from "../../packages/orchestrator/src/fleet/registry/fleet-tags.ts";
import { createFakeStore } from "../../packages/orchestrator/src/store/fake/fake-store.ts";
import { Chance } from "./chance.ts";
import { Client } from "./client.ts";
import { createCloudLine } from "./cloud-line.ts";
import { CloudModel, type ModelMachine } from "./cloud-model.ts";
import { findUnsettled } from "./convergence.ts";
import { Faults, type Seat } from "./faults.ts";
import { createHostLine } from "./host-line.ts";
import { HostModel } from "./host-model.ts";
import { Network } from "./network.ts";
import { createOrchestrator, type SimOrchestrator } from "./orchestrator.ts";
import { type Parts, REAL_PARTS } from "./parts.ts";
import { Safety } from "./safety.ts";
import { drawScenario, type Scenario } from "./scenario.ts";
import { EPOCH_MS, SimProcess } from "./sim-process.ts";
import { createStoreLine } from "./store-line.ts";
import { Timeline } from "./timeline.ts";
import { Trace } from "./trace.ts";
import { CALM } from "./weather.ts";
import type { SimWorld } from "./world.ts";

export interface Outcome {
  readonly seed: number;
  /** What went wrong; undefined where nothing did. */
  readonly failure: string | undefined;
  readonly digest: string;
  readonly lastEvents: readonly string[];
  readonly events: number;
  readonly virtualMs: number;
}

const FLEET_ID = "sim";
const KEEP_LINES = 60;
/** How far apart the looks at whether everything is settled are, and how many in a row must find it so. */
const LOOK_MS = 20_000;
const LOOKS = 3;

export interface SimulateOptions {
  readonly parts?: Parts;
  /** Instead of what the seed would draw. */
  readonly scenario?: Partial<Scenario>;
  readonly keepLines?: number;
  /** Whether the trace has what orchestrators log. */
  readonly logs?: "traced" | "silent";
}

/** Runs one seed: a storm of faults under which nothing may go wrong, then calm in which everything must come right. */
export async function simulate(seed: number, options: SimulateOptions = {}): Promise<Outcome> {
  const scenario = { ...drawScenario(seed), ...options.scenario };
  const timeline = new Timeline();
  const trace = new Trace({ nowMs: () => timeline.nowMs, keep: options.keepLines ?? KEEP_LINES });
  const world: SimWorld = { timeline, chance: new Chance(seed * 2), trace, weather: CALM };
  const onLog = (line: string): void => {
    const { name, msg, err, time: _time, ...more } = JSON.parse(line) as Record<string, unknown>;
    trace.add(`log: ${String(name)} ${String(msg)} ${JSON.stringify({ err, ...more }).slice(0, 300)}`);
  };
  const run = new Run(world, scenario, {
    parts: options.parts ?? REAL_PARTS,
    onLog: options.logs === "traced" ? onLog : undefined,
  });
  const failure = await run.toTheEnd();
  return {
    seed,
    failure,
    digest: trace.digest(),
    lastEvents: trace.last(),
    events: timeline.events,
    virtualMs: timeline.nowMs,
  };
}

interface RunOptions {
  readonly parts: Parts;
  readonly onLog: ((line: string) => void) | undefined;
}

class Run {
  readonly #world: SimWorld;
  readonly #scenario: Scenario;
  readonly #parts: Parts;
  readonly #onLog: RunOptions["onLog"];
  readonly #network: Network;
  readonly #cloud: CloudModel;
  readonly #safety: Safety;
  readonly #store: ReturnType<typeof createFakeStore>;
  readonly #seats: OrchestratorSeat[];
  readonly #clients: Client[] = [];
  #ids = 0;

  constructor(world: SimWorld, scenario: Scenario, { parts, onLog }: RunOptions) {
    this.#onLog = onLog;
    this.#world = world;
    this.#scenario = scenario;
    this.#parts = parts;
    const { timeline } = world;
    this.#network = new Network(timeline);
    const clock = { nowMs: () => EPOCH_MS + timeline.nowMs, monotonicMs: () => timeline.nowMs, sleep: neverSleeps };
    this.#store = createFakeStore({ clock });
    this.#safety = new Safety({
      world,
      scenario,
      machines: () => this.#cloud.machines.values(),
      isOwn: ({ instanceId }) => !instanceId.startsWith("foreign"),
      viewOf: (process, instanceId) => this.#viewOf(process, instanceId),
      waitingCreates: () => this.#clients.filter(({ isWaiting }) => isWaiting).length,
    });
    this.#cloud = new CloudModel({
      world,
      watch: this.#safety,
      newHost: (instanceId) =>
        new HostModel({ instanceId, maxSessions: scenario.maxSessions, world, watch: this.#safety }),
    });
    this.#seats = Array.from(
      { length: scenario.orchestrators },
      (_, index) => new OrchestratorSeat(index, world, (process) => this.#compose(index, process)),
    );
  }

  async toTheEnd(): Promise<string | undefined> {
    this.#cloud.addForeign("foreign-1", { "turnbox-fleet": "another" });
    this.#cloud.addForeign("foreign-2", { name: "somebody" });
    for (const seat of this.#seats) seat.start();
    this.#planClients();
    this.#planFaults();
    const isOver = (): boolean => this.#safety.violation !== undefined;
    await this.#world.timeline.runUntil(this.#scenario.stormMs, isOver);
    if (isOver()) return this.#safety.violation;
    this.#calmDown();
    return await this.#untilSettled(isOver);
  }

  async #untilSettled(isOver: () => boolean): Promise<string | undefined> {
    const { timeline } = this.#world;
    const untilMs = timeline.nowMs + this.#scenario.convergeWithinMs;
    let settledLooks = 0;
    for (;;) {
      await timeline.runUntil(timeline.nowMs + LOOK_MS, isOver);
      if (isOver()) return this.#safety.violation;
      const unsettled = await findUnsettled({
        world: this.#world,
        scenario: this.#scenario,
        cloud: this.#cloud,
        store: this.#store,
        safety: this.#safety,
        clients: this.#clients,
        isOwn,
      });
      settledLooks = unsettled.length === 0 ? settledLooks + 1 : 0;
      if (settledLooks === LOOKS) return undefined;
      if (timeline.nowMs >= untilMs) return `does not settle: ${unsettled.join("; ")}`;
    }
  }

  #planClients(): void {
    const { timeline, chance } = this.#world;
    const { clients, stormMs } = this.#scenario;
    const isBursty = chance.happens(0.5);
    let atMs = 0;
    for (let index = 0; index < clients; index += 1) {
      atMs += isBursty && chance.happens(0.8) ? chance.between(0, 200) : chance.exponential((stormMs * 0.8) / clients);
      const name = `c${String(index)}`;
      timeline.after(Math.min(atMs, stormMs * 0.95), () => {
        this.#begin(name);
      });
    }
  }

  #begin(name: string): void {
    const { chance } = this.#world;
    const holdMs = chance.happens(0.25) ? undefined : chance.exponential(120_000);
    const client = new Client({
      world: this.#world,
      safety: this.#safety,
      name,
      anyone: () => this.#anyone(),
      holdMs,
      uses: chance.whole(0, 2),
    });
    this.#clients.push(client);
    client.run().catch((error: unknown) => {
      this.#safety.fail(`${name} failed: ${error instanceof Error ? (error.stack ?? "") : String(error)}`);
    });
  }

  #planFaults(): void {
    const world = this.#world;
    const { faults, meanFaultMs, stormMs } = this.#scenario;
    const machine = new Faults({
      world,
      network: this.#network,
      cloud: this.#cloud,
      seats: this.#seats,
      anyone: () => this.#anyone(),
      isOwn: (one) => isOwn(one) && one.state !== "terminated",
      stopStart: this.#scenario.stopStart,
    });
    const next = (): void => {
      const inMs = world.chance.exponential(meanFaultMs);
      if (world.timeline.nowMs + inMs >= stormMs) return;
      world.timeline.after(inMs, () => {
        const fault = world.chance.pick(faults);
        if (fault !== undefined) machine.happen(fault);
        next();
      });
    };
    next();
  }

  #calmDown(): void {
    const world = this.#world;
    world.trace.add("calm");
    world.weather = CALM;
    this.#network.heal();
    for (const seat of this.#seats) seat.restore();
    for (const machine of this.#cloud.machines.values()) {
      machine.host.health = "healthy";
      machine.isDead = false;
      if (machine.state === "running") machine.host.start();
    }
  }

  #compose(index: number, process: SimProcess): SimOrchestrator {
    const world = this.#world;
    const { stopStart } = this.#scenario;
    return createOrchestrator({
      process,
      scenario: this.#scenario,
      parts: this.#parts,
      fleetId: FLEET_ID,
      store: createStoreLine({ world, process, store: this.#store, watch: this.#safety }),
      provisioner: createCloudLine({ world, process, cloud: this.#cloud, stopStart }),
      connectHost: (url) => this.#connect(index, process, url),
      onLog: this.#onLog,
      newId: (kind) => {
        this.#ids += 1;
        return `${kind}${String(this.#ids)}`;
      },
    });
  }

  #connect(index: number, process: SimProcess, url: string): HostConnection {
    const machine = [...this.#cloud.machines.values()].find((one) => one.url === url);
    const instanceId = new URL(url).hostname.split(".")[0] ?? "";
    const host = machine?.host ?? this.#cloud.machines.get(instanceId)?.host;
    if (host === undefined) throw new Error(`no machine was ever at ${url}`);
    return createHostLine({
      world: this.#world,
      process,
      host,
      isThere: () => this.#cloud.machines.get(instanceId)?.url === url,
      cut: () => this.#network.stateOf({ orchestrator: index, instanceId }),
      watch: this.#safety,
    });
  }

  #viewOf(process: SimProcess, instanceId: string) {
    const seat = this.#seats.find((one) => one.process === process);
    for (const view of seat?.orchestrator?.registry.placementView() ?? []) {
      if (view.instanceId === instanceId) return view;
    }
    return undefined;
  }

  #anyone(): SimOrchestrator | undefined {
    const serving = this.#seats.flatMap((seat) => (seat.isServing ? (seat.orchestrator ?? []) : []));
    return this.#world.chance.pick(serving);
  }
}

/** Where one orchestrator runs, dies and is started again. */
class OrchestratorSeat implements Seat {
  readonly index: number;
  readonly #world: SimWorld;
  readonly #compose: (process: SimProcess) => SimOrchestrator;
  #runs = 0;
  #process: SimProcess | undefined;
  #orchestrator: SimOrchestrator | undefined;
  #isServing = false;

  constructor(index: number, world: SimWorld, compose: (process: SimProcess) => SimOrchestrator) {
    this.index = index;
    this.#world = world;
    this.#compose = compose;
  }

  get process(): SimProcess | undefined {
    return this.#process;
  }

  get orchestrator(): SimOrchestrator | undefined {
    return this.#orchestrator;
  }

  get isServing(): boolean {
    return this.#isServing;
  }

  start(): void {
    if (this.#process !== undefined) return;
    const { timeline, trace, chance } = this.#world;
    this.#runs += 1;
    const process = new SimProcess({
      name: `o${String(this.index)}.${String(this.#runs)}`,
      timeline,
      wallSkewMs: chance.between(-400, 400),
    });
    this.#process = process;
    trace.add(`${process.name} starts`);
    const orchestrator = this.#compose(process);
    this.#orchestrator = orchestrator;
    orchestrator
      .run(() => {
        if (this.#process === process) this.#isServing = true;
      })
      .catch((error: unknown) => {
        trace.add(`${process.name} ends: ${String(error)}`);
      });
  }

  kill(restartAfterMs: number): void {
    this.#process?.kill();
    this.#process = undefined;
    this.#orchestrator = undefined;
    this.#isServing = false;
    this.#world.timeline.after(restartAfterMs, () => {
      this.start();
    });
  }

  pause(forMs: number): void {
    const process = this.#process;
    process?.pause();
    this.#world.timeline.after(forMs, () => {
      process?.resume();
    });
  }

  restore(): void {
    this.#process?.resume();
    this.start();
  }
}

const isOwn = (machine: ModelMachine): boolean =>
  machine.tags["turnbox-fleet"] === fleetTags(FLEET_ID)["turnbox-fleet"];

const neverSleeps = (): Promise<void> => Promise.reject(new Error("a store does not sleep"));
