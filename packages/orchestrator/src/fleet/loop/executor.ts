import { createDeadline, hasReason, SandboxError } from "@turnbox/core";
import type { FencedHostCall } from "../../control/host-connection.ts";
import type { DrainPlan, InstanceRow } from "../../store/store.ts";
import type { Slots } from "../placement/slots.ts";
import { isOpen } from "../registry/drain-plan.ts";
import { type Job, Jobs } from "./jobs.ts";
import { Launcher, type LauncherOptions } from "./launcher.ts";
import type { Lead } from "./leadership.ts";
import { closeAndList, pauseAll } from "./pause-host.ts";
import type { Action } from "./phase.ts";

export interface ExecutorOptions extends Omit<LauncherOptions, "isFree" | "startJob"> {
  readonly slots: Slots;
  readonly actionTimeoutMs: number;
  readonly maxActionsAtOnce: number;
  /** Called when a host or the store has seen a later lease. */
  readonly onStale?: () => void;
}

type Kind = Action["kind"];
type ActionOf<K extends Kind> = Extract<Action, { readonly kind: K }>;

/** Does an action at once, or returns the job that does it in the background. */
type Handler<K extends Kind> = (action: ActionOf<K>, lead: Lead) => Promise<void> | Job;
type Handlers = { readonly [K in Kind]: Handler<K> };

/** The least time between two requests to end the same machine. */
const TERMINATE_AGAIN_MS = 30_000;

/** Does what the phases want. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #jobs: Jobs;
  readonly #launcher: Launcher;
  /** Requests to end a machine, by instance. */
  readonly #ends = new Map<string, { readonly tries: number; readonly lastMs: number }>();

  readonly #handlers = {
    launch: (action, lead) => this.#launcher.launch(action, lead),
    drain: ({ instanceId, plan }, lead) => this.#setDrain(instanceId, plan, lead),
    undrain: ({ instanceId }, lead) => this.#setDrain(instanceId, undefined, lead),
    forget: ({ instanceId }, lead) => this.#forget(instanceId, lead),
    /** The control loop reports it to operators. */
    report: () => Promise.resolve(),
    pause_sessions: ({ instanceId }) => ({
      instanceId,
      work: (call) => pauseAll(this.#options.registry.connection(instanceId), call),
    }),
    stop: ({ instanceId }) => ({ instanceId, work: (call) => this.#stop(instanceId, call) }),
    start: ({ instanceId }) => ({
      instanceId,
      work: async (call) => {
        await this.#options.provisioner.start(instanceId, call);
      },
    }),
    terminate: (action) => ({ instanceId: action.instanceId, work: (call) => this.#terminate(action, call) }),
  } satisfies Handlers;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#jobs = new Jobs(options.maxActionsAtOnce);
    this.#launcher = new Launcher({
      ...options,
      startJob: (job, lead) => {
        this.#startJob(job, lead);
      },
      isFree: (instanceId) => this.#jobs.isFree(instanceId),
    });
  }

  /** Returns when all is on record; what takes long goes on in the background. What failed is wanted again next time. */
  async execute(actions: readonly Action[], lead: Lead): Promise<void> {
    const jobs = new Map<string, Job[]>();
    for (const action of actions) {
      lead.signal.throwIfAborted();
      const doing = this.#begin(action.kind, action, lead);
      if (doing instanceof Promise) {
        await doing.catch((error: unknown) => {
          this.#failed(error, { action: action.kind }, lead);
        });
      } else jobs.set(doing.instanceId, [...(jobs.get(doing.instanceId) ?? []), doing]);
    }
    for (const [instanceId, ofInstance] of jobs) {
      const work = async (call: FencedHostCall): Promise<void> => {
        for (const job of ofInstance) await job.work(call);
      };
      this.#startJob({ instanceId, work }, lead);
    }
  }

  /** Says to each host that answers whether it may take new sessions, if it thinks otherwise. */
  reconcileAdmission(lead: Lead): void {
    const { registry } = this.#options;
    for (const instanceId of registry.connectedIds()) {
      const row = registry.row(instanceId);
      const admission = registry.report(instanceId)?.admission;
      if (row === undefined || row.version === 0 || admission === undefined) continue;
      const wanted = isOpen(row) ? "open" : "closed";
      if (wanted === admission) continue;
      const work = (call: FencedHostCall): Promise<void> => registry.connection(instanceId).setAdmission(wanted, call);
      this.#startJob({ instanceId, work }, lead);
    }
  }

  terminateTries(instanceId: string): number {
    return this.#ends.get(instanceId)?.tries ?? 0;
  }

  /** Returns when nothing goes on in the background. */
  async idle(): Promise<void> {
    await this.#jobs.idle();
  }

  /** The kind is a parameter of its own so that the compiler matches the handler with the action. */
  #begin<K extends Kind>(kind: K, action: ActionOf<K>, lead: Lead): Promise<void> | Job {
    const handlers: Handlers = this.#handlers;
    return handlers[kind](action, lead);
  }

  /** One job at a time for each instance, with a deadline. */
  #startJob({ instanceId, work }: Job, lead: Lead): void {
    const { clock, actionTimeoutMs } = this.#options;
    this.#jobs.start(instanceId, async () => {
      using deadline = createDeadline({ clock, ms: actionTimeoutMs, signal: lead.signal });
      try {
        await work({ signal: deadline.signal, epoch: lead.epoch });
      } catch (error) {
        this.#failed(error, { instanceId }, lead);
      }
    });
  }

  #failed(error: unknown, what: Readonly<Record<string, unknown>>, lead: Lead): void {
    const { logger, onStale } = this.#options;
    if (hasReason(error, "EPOCH_STALE")) onStale?.();
    if (!lead.signal.aborted) logger.warn({ err: SandboxError.from(error), ...what }, "an action of the fleet failed");
  }

  /** False if the row was changed since it was looked at: then the world is looked at again first. */
  async #put(instanceId: string, changes: Partial<InstanceRow>, call: FencedHostCall): Promise<boolean> {
    const { registry, store } = this.#options;
    const row = registry.row(instanceId);
    if (row === undefined) return false;
    const next = { ...row, ...changes };
    if ((await store.putInstance(next, call)) === "changed") return false;
    registry.adoptRow({ ...next, version: next.version + 1 });
    return true;
  }

  async #setDrain(instanceId: string, drain: DrainPlan | undefined, call: FencedHostCall): Promise<void> {
    await this.#put(instanceId, { drain }, call);
  }

  async #forget(instanceId: string, call: FencedHostCall): Promise<void> {
    await this.#options.store.deleteInstance(instanceId, call);
    this.#ends.delete(instanceId);
    await this.#options.registry.drop(instanceId);
  }

  async #stop(instanceId: string, call: FencedHostCall): Promise<void> {
    const { registry, provisioner } = this.#options;
    if (registry.row(instanceId)?.goal !== "stopped") {
      await pauseAll(registry.connection(instanceId), call);
      if (!(await this.#put(instanceId, { goal: "stopped" }, call))) return;
    }
    await provisioner.stop(instanceId, call);
  }

  async #terminate({ instanceId, proof }: ActionOf<"terminate">, call: FencedHostCall): Promise<void> {
    const { registry, provisioner, clock, onDone } = this.#options;
    if (registry.row(instanceId)?.goal !== "terminated") {
      if (proof === "empty" && !(await this.#holdsNothing(instanceId, call))) return;
      if (!(await this.#put(instanceId, { goal: "terminated" }, call))) return;
    }
    const before = this.#ends.get(instanceId);
    if (before !== undefined && clock.monotonicMs() - before.lastMs < TERMINATE_AGAIN_MS) return;
    this.#ends.set(instanceId, { tries: (before?.tries ?? 0) + 1, lastMs: clock.monotonicMs() });
    await provisioner.terminate(instanceId, call);
    onDone?.();
  }

  async #holdsNothing(instanceId: string, call: FencedHostCall): Promise<boolean> {
    const { registry, slots } = this.#options;
    if (slots.promised(instanceId).sessions > 0) return false;
    return (await closeAndList(registry.connection(instanceId), call)).length === 0;
  }
}
