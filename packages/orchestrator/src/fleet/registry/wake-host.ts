import { type Clock, createDeadline, type Log, SandboxError } from "@turnbox/core";
import { whileWanted } from "../../async/while-wanted.ts";
import type { Provisioner } from "../../provisioner/provisioner.ts";
import type { InstanceRow, Store } from "../../store/store.ts";
import type { HostConnection } from "../../control/host-connection.ts";
import type { AwaitHosts } from "./await-hosts.ts";
import { begunDrain } from "./drain-plan.ts";
import type { InstanceRegistry } from "./instance-registry.ts";
import { updateRow } from "./update-row.ts";

interface Call {
  readonly signal: AbortSignal;
}

/** The line to an instance's host; one that was stopped is started first, one that is on its way is waited for. */
export type WakeHost = (instanceId: string, call: Call) => Promise<HostConnection>;

export interface WakeHostOptions {
  readonly registry: InstanceRegistry;
  readonly awaitHosts: AwaitHosts;
  readonly store: Store;
  readonly provisioner: Provisioner;
  readonly clock: Clock;
  readonly logger: Log;
  /** How long sandboxes of a woken instance go on before its drain pauses them again. */
  readonly drainTimeoutMs: number;
  readonly wakeTimeoutMs: number;
  readonly shutdown: AbortSignal;
}

const POLL_MS = 1000;

/**
 * Reaches hosts. An instance that was stopped, by the fleet or its maker, runs again from its first use on: any replica
 * may start it, calls at the same time share one start, and it goes on when they leave. The drain that stopped it begins
 * anew.
 */
export function createWakeHost(options: WakeHostOptions): WakeHost {
  const { registry, store, provisioner, clock, logger } = options;
  const waking = new Map<string, Promise<void>>();

  const isStopped = (instanceId: string): boolean => {
    const row = registry.row(instanceId);
    if (row === undefined || row.goal === "terminated") return false;
    const machine = registry.machineState(instanceId);
    const byItsMaker = machine === "stopped" || machine === "stopping";
    return row.goal === "stopped" || (byItsMaker && provisioner.capabilities.stopStart === "supported");
  };
  const wish = (row: InstanceRow): InstanceRow | undefined => {
    const begun = begunDrain(row);
    if (row.goal === "terminated" || (row.goal === "running" && begun === undefined)) return undefined;
    const nowMs = clock.nowMs();
    const anew = begun && { ...begun, sinceMs: nowMs, deadlineMs: nowMs + options.drainTimeoutMs };
    return { ...row, goal: "running", drain: anew ?? row.drain };
  };
  /** A machine that is still stopping cannot be started yet: what it says then is kept for the end. */
  const start = async (instanceId: string, call: Call): Promise<string | undefined> => {
    try {
      await provisioner.start(instanceId, call);
      return undefined;
    } catch (error) {
      const failure = SandboxError.from(error);
      if (failure.reason === "UNIMPLEMENTED" || call.signal.aborted) throw failure;
      return failure.message;
    }
  };
  const wake = async (instanceId: string): Promise<void> => {
    using deadline = createDeadline({ clock, ms: options.wakeTimeoutMs + POLL_MS, signal: options.shutdown });
    const call = { signal: deadline.signal };
    const row = await updateRow({ store, instanceId, change: wish }, call);
    if (row?.goal !== "running") return;
    registry.adoptRow(row);
    logger.info({ instanceId }, "starts a stopped instance for its first use");
    let problem: string | undefined = "is stopped";
    const deadlineMs = clock.monotonicMs() + options.wakeTimeoutMs;
    while (clock.monotonicMs() < deadlineMs) {
      if (problem !== undefined) problem = await start(instanceId, call);
      await registry.sync(call).catch(() => undefined);
      await registry.ask(instanceId, call);
      if (registry.report(instanceId) !== undefined) return;
      await clock.sleep(POLL_MS, call);
    }
    const why = problem ?? "its host does not answer";
    throw new SandboxError("HOST_UNREACHABLE", `the instance ${instanceId} did not come up: ${why}`, {
      admitted: "no",
      metadata: { instanceId },
    });
  };

  /** Another replica may have launched it since this one has looked. */
  const lookUp = async (instanceId: string, call: Call): Promise<void> => {
    const rows = await store.listInstances(call);
    if (rows.some((row) => row.instanceId === instanceId)) await registry.sync(call);
  };

  return async (instanceId, call) => {
    if (registry.row(instanceId) === undefined) await lookUp(instanceId, call);
    if (isStopped(instanceId)) {
      const joined = waking.get(instanceId) ?? wake(instanceId).finally(() => waking.delete(instanceId));
      waking.set(instanceId, joined);
      await whileWanted(joined, call.signal);
    }
    const joined = waking.get(instanceId);
    if (joined !== undefined) await whileWanted(joined, call.signal);
    else await options.awaitHosts([instanceId], call);
    return registry.connection(instanceId);
  };
}
