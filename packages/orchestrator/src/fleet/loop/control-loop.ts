import { type Clock, type Log, SandboxError } from "@turnbox/core";
import type { Provisioner } from "../../provisioner/provisioner.ts";
import type { Store } from "../../store/store.ts";
import { type FleetMeter, NO_METER } from "../fleet-meter.ts";
import type { InstanceRegistry } from "../registry/instance-registry.ts";
import type { Executor } from "./executor.ts";
import { createForecast } from "./forecast.ts";
import type { Lead, Leadership } from "./leadership.ts";
import type { Action, FleetPolicy, Phases, World } from "./phase.ts";

export interface ControlLoopOptions {
  readonly phases: Phases;
  readonly policy: FleetPolicy;
  readonly registry: InstanceRegistry;
  readonly store: Store;
  readonly provisioner: Pick<Provisioner, "capabilities" | "image">;
  readonly leadership: Leadership;
  readonly executor: Executor;
  /** Serves creates of this replica that wait, as far as there is room, before demand is looked at. */
  readonly settleDemand: (call: Call) => Promise<void>;
  /** Called after each look at the hosts, in every replica. */
  readonly onLook?: (call: Call) => Promise<void>;
  /** How long a machine takes from its launch to its first answer, about. */
  readonly bootTimeMs: number;
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly logger: Log;
  readonly meter?: FleetMeter;
}

interface Call {
  readonly signal: AbortSignal;
}

/** Between two looks, however often it is woken. */
const LEAST_PAUSE_MS = 200;

const ORDER = ["health", "recovery", "scaleUp", "scaleDown", "drain", "terminate", "gc"] as const;

/** Looks at the fleet and brings it to what is wanted, in every replica; only the one with the lease acts. */
export class ControlLoop {
  readonly #options: ControlLoopOptions;
  readonly #forecast: ReturnType<typeof createForecast>;
  #wakeUp = (): void => undefined;
  #isWoken = false;

  constructor(options: ControlLoopOptions) {
    this.#options = options;
    this.#forecast = createForecast({ bootTimeMs: options.bootTimeMs });
  }

  /** One look, and what follows from it. */
  async tick(call: Call): Promise<void> {
    const { meter = NO_METER } = this.#options;
    await meter.tick(() => this.#round(call));
  }

  /** The next look need not wait for its time. */
  wake(): void {
    this.#isWoken = true;
    this.#wakeUp();
  }

  /** Ticks at each interval and when woken, until the signal. */
  async run({ signal }: Call): Promise<void> {
    const { clock, logger, intervalMs } = this.#options;
    const isOver = (): boolean => signal.aborted;
    while (!isOver()) {
      await this.tick({ signal }).catch((error: unknown) => {
        if (!isOver()) logger.error({ err: SandboxError.from(error) }, "a look at the fleet failed");
      });
      await clock.sleep(LEAST_PAUSE_MS, { signal }).catch(() => undefined);
      if (this.#takeWake()) continue;
      const nap = new AbortController();
      this.#wakeUp = () => {
        nap.abort();
      };
      await clock.sleep(intervalMs, { signal: AbortSignal.any([signal, nap.signal]) }).catch(() => undefined);
    }
  }

  /** Whether it was woken since this was last asked. */
  #takeWake(): boolean {
    const was = this.#isWoken;
    this.#isWoken = false;
    return was;
  }

  async #round(call: Call): Promise<void> {
    const { leadership, registry } = this.#options;
    const lead = await leadership.hold(call);
    await registry.refresh(call);
    await this.#options.onLook?.(call);
    if (lead === undefined) return;
    try {
      await this.#act({ epoch: lead.epoch, signal: AbortSignal.any([lead.signal, call.signal]) });
    } catch (error) {
      if (SandboxError.from(error).reason === "EPOCH_STALE") leadership.lose();
      if (!lead.signal.aborted) throw error;
    }
  }

  async #act(lead: Lead): Promise<void> {
    const { phases, store, clock, registry, executor } = this.#options;
    await this.#adopt(lead);
    await this.#options.settleDemand(lead);
    const waiting = await store.waitingCreates(lead);
    const predicted = this.#forecast.next({ nowMs: clock.nowMs(), instances: registry.instances() });
    const reports: Action[] = [];
    for (const name of ORDER) {
      lead.signal.throwIfAborted();
      const actions = phases[name](this.#look(waiting, predicted));
      reports.push(...actions.filter((action) => action.kind === "report"));
      await executor.execute(actions, lead);
    }
    executor.reconcileAdmission(lead);
    this.#report(reports);
  }

  /** Writes down machines that carry the fleet's mark and are not on record. */
  async #adopt(lead: Lead): Promise<void> {
    const { registry, store } = this.#options;
    for (const { row } of registry.views(() => 0)) {
      if (row.version > 0 || row.goal === "terminated") continue;
      if ((await store.putInstance(row, lead)) === "put") registry.adoptRow({ ...row, version: 1 });
    }
  }

  #look(waitingCreates: number, predictedInstances: number): World {
    const { clock, policy, provisioner, registry, executor } = this.#options;
    return {
      nowMs: clock.nowMs(),
      policy,
      capabilities: provisioner.capabilities,
      instances: registry.views((instanceId) => executor.terminateTries(instanceId)),
      waitingCreates,
      predictedInstances,
      defaultImage: provisioner.image,
    };
  }

  /** Shows people what they should know of each instance, and logs what is new. */
  #report(reports: readonly Action[]): void {
    const { registry, logger } = this.#options;
    const notices = new Map(
      reports.flatMap((report) => (report.kind === "report" ? [[report.instanceId, report.message] as const] : [])),
    );
    for (const { row } of registry.views(() => 0)) {
      const { instanceId } = row;
      const message = notices.get(instanceId) ?? "";
      if (registry.notice(instanceId, message) === "new")
        logger.warn({ instanceId, message }, "an instance needs attention");
    }
  }
}
