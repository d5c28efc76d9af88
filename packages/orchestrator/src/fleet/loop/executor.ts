import { type Clock, createDeadline, hasReason, type Log, SandboxError } from "@turnbox/core";
import type { Provisioner } from "../../provisioner/provisioner.ts";
import type { InstanceRow, Store } from "../../store/store.ts";
import { isOpen } from "../registry/drain-plan.ts";
import type { InstanceRegistry } from "../registry/instance-registry.ts";
import type { Slots } from "../placement/slots.ts";
import { closeAndList, pauseAll } from "./pause-host.ts";
import { Jobs } from "./jobs.ts";
import { createLauncher } from "./launcher.ts";
import type { Lead } from "./leadership.ts";
import type { Action } from "./phase.ts";

export interface ExecutorOptions {
  readonly registry: InstanceRegistry;
  readonly store: Store;
  readonly provisioner: Provisioner;
  readonly slots: Slots;
  readonly clock: Clock;
  readonly logger: Log;
  /** An id for a machine to be launched that is none of those taken. */
  readonly newInstanceId: (taken: ReadonlySet<string>) => string;
  readonly actionTimeoutMs: number;
  readonly maxActionsAtOnce: number;
  /** Called when a machine was launched or ended, so that the next look need not be waited for. */
  readonly onDone?: () => void;
  /** Called where a host or the store has seen a later lease. */
  readonly onStale?: () => void;
}

/** Does what the phases want. */
export interface Executor {
  /** Answers when all is on record; what takes long goes on in the background. What failed is wanted again next time. */
  execute(actions: readonly Action[], lead: Lead): Promise<void>;
  /** Tells each host that answers whether it may take new sessions, where it thinks otherwise. */
  reconcileAdmission(lead: Lead): void;
  terminateTries(instanceId: string): number;
  /** Answers when nothing goes on in the background. */
  idle(): Promise<void>;
}

type OnInstance = Exclude<Action, { kind: "launch" }>;

/** The least time between two requests to end the same machine. */
const TERMINATE_AGAIN_MS = 30_000;

export function createExecutor(options: ExecutorOptions): Executor {
  const { registry, store, provisioner, slots, clock, logger, actionTimeoutMs } = options;
  const jobs = new Jobs(options.maxActionsAtOnce);
  const ends = new Map<string, { readonly tries: number; readonly lastMs: number }>();

  const failed = (error: unknown, what: Readonly<Record<string, unknown>>, lead: Lead): void => {
    if (hasReason(error, "EPOCH_STALE")) options.onStale?.();
    if (!lead.signal.aborted) logger.warn({ err: SandboxError.from(error), ...what }, "an action of the fleet failed");
  };
  const inBackground = (instanceId: string, lead: Lead, work: (call: FencedWork) => Promise<void>): void => {
    jobs.start(instanceId, async () => {
      using deadline = createDeadline({ clock, ms: actionTimeoutMs, signal: lead.signal });
      await work({ signal: deadline.signal, epoch: lead.epoch }).catch((error: unknown) => {
        failed(error, { instanceId }, lead);
      });
    });
  };
  const launcher = createLauncher({ ...options, inBackground, isFree: (instanceId) => jobs.isFree(instanceId) });

  /** False where somebody else has changed the row since it was looked at: then the world is looked at again first. */
  const put = async (
    row: InstanceRow | undefined,
    changes: Partial<InstanceRow>,
    call: FencedWork,
  ): Promise<boolean> => {
    if (row === undefined) return false;
    const next = { ...row, ...changes };
    if ((await store.putInstance(next, call)) === "changed") return false;
    registry.adoptRow({ ...next, version: next.version + 1 });
    return true;
  };

  const holdsNothing = async (instanceId: string, call: FencedWork): Promise<boolean> => {
    if (slots.promised(instanceId).sessions > 0) return false;
    return (await closeAndList(registry.connection(instanceId), call)).length === 0;
  };
  const terminate = async (
    { instanceId, proof }: OnInstance & { kind: "terminate" },
    call: FencedWork,
  ): Promise<void> => {
    const row = registry.row(instanceId);
    if (row?.goal !== "terminated") {
      if (proof === "empty" && !(await holdsNothing(instanceId, call))) return;
      if (!(await put(row, { goal: "terminated" }, call))) return;
    }
    const before = ends.get(instanceId);
    if (before !== undefined && clock.monotonicMs() - before.lastMs < TERMINATE_AGAIN_MS) return;
    ends.set(instanceId, { tries: (before?.tries ?? 0) + 1, lastMs: clock.monotonicMs() });
    await provisioner.terminate(instanceId, call);
    options.onDone?.();
  };
  const stop = async (instanceId: string, call: FencedWork): Promise<void> => {
    const row = registry.row(instanceId);
    if (row?.goal !== "stopped") {
      await pauseAll(registry.connection(instanceId), call);
      if (!(await put(row, { goal: "stopped" }, call))) return;
    }
    await provisioner.stop(instanceId, call);
  };
  const inTheBackground = async (action: OnInstance, call: FencedWork): Promise<void> => {
    const { instanceId } = action;
    if (action.kind === "terminate") await terminate(action, call);
    else if (action.kind === "stop") await stop(instanceId, call);
    else if (action.kind === "start") await provisioner.start(instanceId, call);
    else if (action.kind === "pause_sessions") await pauseAll(registry.connection(instanceId), call);
  };
  const atOnce = async (action: OnInstance, call: FencedWork): Promise<void> => {
    const { instanceId } = action;
    if (action.kind === "drain") await put(registry.row(instanceId), { drain: action.plan }, call);
    else if (action.kind === "undrain") await put(registry.row(instanceId), { drain: undefined }, call);
    else if (action.kind === "forget") {
      await store.deleteInstance(instanceId, call);
      ends.delete(instanceId);
      await registry.drop(instanceId);
    }
  };

  return {
    execute: async (actions, lead) => {
      const call = { signal: lead.signal, epoch: lead.epoch };
      const later = new Map<string, OnInstance[]>();
      for (const action of actions) {
        lead.signal.throwIfAborted();
        try {
          if (action.kind === "launch") await launcher.launch(action, lead);
          else if (IMMEDIATE.has(action.kind)) await atOnce(action, call);
          else later.set(action.instanceId, [...(later.get(action.instanceId) ?? []), action]);
        } catch (error) {
          failed(error, { action: action.kind }, lead);
        }
      }
      for (const [instanceId, wanted] of later) {
        inBackground(instanceId, lead, async (work) => {
          for (const action of wanted) await inTheBackground(action, work);
        });
      }
    },
    reconcileAdmission: (lead) => {
      for (const instanceId of registry.connectedIds()) {
        const row = registry.row(instanceId);
        const admission = registry.report(instanceId)?.admission;
        if (row === undefined || row.version === 0 || admission === undefined) continue;
        const wanted = isOpen(row) ? "open" : "closed";
        if (wanted === admission) continue;
        inBackground(instanceId, lead, async (work) => {
          await registry.connection(instanceId).setAdmission(wanted, work);
        });
      }
    },
    terminateTries: (instanceId) => ends.get(instanceId)?.tries ?? 0,
    idle: () => jobs.idle(),
  };
}

/** A call in the name of the leader. */
export interface FencedWork {
  readonly signal: AbortSignal;
  readonly epoch: number;
}

const IMMEDIATE: ReadonlySet<Action["kind"]> = new Set(["drain", "undrain", "forget", "report"]);
