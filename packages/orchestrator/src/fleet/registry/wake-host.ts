import { type Clock, createDeadline, type Log, raceSignal, SandboxError } from "@turnbox/core";
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

/** The connection to an instance's host; one that was stopped is started first, one that is on its way is waited for. */
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

export function createWakeHost(options: WakeHostOptions): WakeHost {
  const waker = new HostWaker(options);
  return (instanceId, call) => waker.connect(instanceId, call);
}

/**
 * Connects to hosts. An instance that was stopped, by the fleet or its maker, runs again from its first use on: any replica
 * may start it, calls at the same time share one start, and it goes on when they leave. The drain that stopped it begins
 * again.
 */
class HostWaker {
  readonly #options: WakeHostOptions;
  /** Starts that are under way, by instance. */
  readonly #waking = new Map<string, Promise<void>>();

  constructor(options: WakeHostOptions) {
    this.#options = options;
  }

  async connect(instanceId: string, call: Call): Promise<HostConnection> {
    const { registry, awaitHosts } = this.#options;
    if (registry.row(instanceId) === undefined) await this.#lookUp(instanceId, call);
    if (this.#isStopped(instanceId) && !this.#waking.has(instanceId)) {
      const waking = this.#wake(instanceId).finally(() => this.#waking.delete(instanceId));
      this.#waking.set(instanceId, waking);
    }
    const waking = this.#waking.get(instanceId);
    if (waking !== undefined) await raceSignal(waking, call.signal);
    await awaitHosts([instanceId], call);
    return registry.connection(instanceId);
  }

  /** Another replica may have launched it since this one has looked. */
  async #lookUp(instanceId: string, call: Call): Promise<void> {
    const { registry, store } = this.#options;
    const rows = await store.listInstances(call);
    if (rows.some((row) => row.instanceId === instanceId)) await registry.sync(call);
  }

  #isStopped(instanceId: string): boolean {
    const { registry, provisioner } = this.#options;
    const row = registry.row(instanceId);
    if (row === undefined || row.goal === "terminated") return false;
    const machine = registry.machineState(instanceId);
    const byItsMaker = machine === "stopped" || machine === "stopping";
    return row.goal === "stopped" || (byItsMaker && provisioner.capabilities.stopStart === "supported");
  }

  async #wake(instanceId: string): Promise<void> {
    const { registry, store, clock, logger, wakeTimeoutMs, shutdown } = this.#options;
    using deadline = createDeadline({ clock, ms: wakeTimeoutMs + POLL_MS, signal: shutdown });
    const call = { signal: deadline.signal };
    const row = await updateRow({ store, instanceId, change: (old) => this.#restarted(old) }, call);
    if (row?.goal !== "running") return;
    registry.adoptRow(row);
    logger.info({ instanceId }, "starts a stopped instance for its first use");
    let problem: string | undefined = "is stopped";
    const deadlineMs = clock.monotonicMs() + wakeTimeoutMs;
    while (clock.monotonicMs() < deadlineMs) {
      if (problem !== undefined) problem = await this.#start(instanceId, call);
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
  }

  #restarted(row: InstanceRow): InstanceRow | undefined {
    const { clock, drainTimeoutMs } = this.#options;
    const begun = begunDrain(row);
    if (row.goal === "terminated" || (row.goal === "running" && begun === undefined)) return undefined;
    const nowMs = clock.nowMs();
    const again = begun && { ...begun, sinceMs: nowMs, deadlineMs: nowMs + drainTimeoutMs };
    return { ...row, goal: "running", drain: again ?? row.drain };
  }

  /** A machine that is still stopping cannot be started yet: what it says then is kept for the end. */
  async #start(instanceId: string, call: Call): Promise<string | undefined> {
    try {
      await this.#options.provisioner.start(instanceId, call);
      return undefined;
    } catch (error) {
      const failure = SandboxError.from(error);
      if (failure.reason === "UNIMPLEMENTED" || call.signal.aborted) throw failure;
      return failure.message;
    }
  }
}
