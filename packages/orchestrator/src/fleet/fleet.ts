import { type Clock, type Log, SandboxError } from "@turnbox/core";
import type { FleetOperations } from "./fleet-view.ts";
import type { Provisioner } from "../provisioner/provisioner.ts";
import type { Store } from "../store/store.ts";
import type { HostConnection } from "../control/host-connection.ts";
import type { SandboxControl } from "../control/sandbox-control.ts";
import { createAwaitHosts } from "./registry/await-hosts.ts";
import { CreateQueue } from "./create/create-queue.ts";
import type { FleetMeter } from "./fleet-meter.ts";
import { createFleetSandboxControl } from "./fleet-sandbox-control.ts";
import { createWaitingPolicy } from "./create/waiting-policy.ts";
import { InstanceRegistry } from "./registry/instance-registry.ts";
import { ControlLoop } from "./loop/control-loop.ts";
import { Executor } from "./loop/executor.ts";
import { Leadership } from "./loop/leadership.ts";
import type { FleetPolicy, Phases } from "./loop/phase.ts";
import { createFleetOperations } from "./fleet-operations.ts";
import type { PlacementRules } from "./placement/placement.ts";
import { createWakeHost } from "./registry/wake-host.ts";
import { Slots } from "./placement/slots.ts";
import type { TemplateArchives } from "./template/template-archives.ts";
import { TemplateSync } from "./template/template-sync.ts";

export interface FleetTimes {
  /** Between two looks at the fleet. */
  readonly intervalMs: number;
  readonly reportTimeoutMs: number;
  readonly createTimeoutMs: number;
  /** How long one action of the control loop may take. */
  readonly actionTimeoutMs: number;
  /** How long the start of a stopped instance may take. */
  readonly wakeTimeoutMs: number;
  readonly leaseTtlMs: number;
  /** How long a machine takes from its launch to its first answer, about. */
  readonly bootTimeMs: number;
}

export interface FleetOptions {
  readonly fleetId: string;
  /** Names this process among all replicas that ever were. */
  readonly holder: string;
  readonly provisioner: Provisioner;
  readonly store: Store;
  readonly connectHost: (url: string) => HostConnection;
  readonly policy: FleetPolicy;
  readonly phases: Phases;
  readonly rules: PlacementRules;
  readonly times: FleetTimes;
  readonly maxWaitingCreates: number;
  readonly maxActionsAtOnce: number;
  readonly newInstanceId: (taken: ReadonlySet<string>) => string;
  readonly newSessionId: () => string;
  readonly clock: Clock;
  readonly logger: Log;
  /** What hosts that come later get their templates from; they get none unless given. */
  readonly archives?: TemplateArchives;
  readonly meter?: FleetMeter;
  /** Ends what goes on by itself: creates and starts whose callers have left. */
  readonly shutdown: AbortSignal;
}

/** A fleet in one replica. Its owner runs it and disposes of it; the store and the provisioner are not its own. */
export interface Fleet extends AsyncDisposable {
  readonly control: SandboxControl;
  readonly operations: FleetOperations;
  readonly registry: InstanceRegistry;
  readonly slots: Slots;
  readonly queue: CreateQueue;
  readonly loop: ControlLoop;
  readonly leadership: Leadership;
  readonly executor: Executor;
  /** Looks, leads if it can, and acts if it leads, until the signal. */
  run(call: { readonly signal: AbortSignal }): Promise<void>;
}

/** Puts the parts of a fleet together. */
export function createFleet(options: FleetOptions): Fleet {
  const { provisioner, store, policy, times, clock, logger } = options;
  const { capabilities } = provisioner;
  const slots = new Slots(clock);
  const registry = new InstanceRegistry({ ...options, slots, reportTimeoutMs: times.reportTimeoutMs });
  const { bootTimeMs } = times;
  const wake = (): void => {
    loop.wake();
  };
  const queue = new CreateQueue({
    ...options,
    maxWaiting: options.maxWaitingCreates,
    whyNotWait: createWaitingPolicy({ registry, capabilities, ...policy, bootTimeMs }),
    retryAfterMs: RETRY_AFTER_MS,
    onDemand: wake,
  });
  const listening = registry.listen(() => {
    queue.pumpSoon();
  });
  const templates = createTemplateSync(options, { registry, queue });
  const control = createControl(options, { registry, slots, queue, ...(templates && { templates }) });
  const leadership = new Leadership({ ...options, ttlMs: times.leaseTtlMs });
  const executor = new Executor({
    ...options,
    registry,
    slots,
    actionTimeoutMs: times.actionTimeoutMs,
    onDone: wake,
    onStale: () => {
      leadership.lose();
    },
  });
  const loop = new ControlLoop({
    ...options,
    registry,
    leadership,
    executor,
    bootTimeMs,
    intervalMs: times.intervalMs,
    settleDemand: (call) => queue.flush(call),
    onLook: async () => {
      await templates?.look().catch((error: unknown) => {
        logger.error({ err: SandboxError.from(error) }, "the archives of templates cannot be read");
      });
    },
  });
  const { drainTimeoutMs } = policy;
  const operations = createFleetOperations({ registry, store, provisioner, drainTimeoutMs, clock, onWish: wake });
  logger.debug({ policy }, "the fleet is put together");
  return {
    control,
    operations,
    registry,
    slots,
    queue,
    loop,
    leadership,
    executor,
    run: async (call) => {
      await Promise.all([leadership.run(call), loop.run(call)]);
      await executor.idle();
    },
    [Symbol.asyncDispose]: async () => {
      listening[Symbol.dispose]();
      leadership.lose();
      await executor.idle();
      await templates?.idle();
      await queue.idle();
      await registry[Symbol.asyncDispose]();
    },
  };
}

function createTemplateSync(
  { archives, ...options }: FleetOptions,
  { registry, queue }: Pick<Fleet, "registry" | "queue">,
): TemplateSync | undefined {
  if (archives === undefined) return undefined;
  const onSettled = (): void => {
    queue.pumpSoon();
  };
  return new TemplateSync({ ...options, archives, registry, onSettled });
}

interface ControlParts extends Pick<Fleet, "registry" | "slots" | "queue"> {
  readonly templates?: TemplateSync;
}

function createControl(options: FleetOptions, parts: ControlParts): SandboxControl {
  const { clock, policy, times } = options;
  const { drainTimeoutMs } = policy;
  const { createTimeoutMs, wakeTimeoutMs } = times;
  const awaitHosts = createAwaitHosts({ registry: parts.registry, clock });
  const wakeHost = createWakeHost({ ...options, ...parts, awaitHosts, drainTimeoutMs, wakeTimeoutMs });
  return createFleetSandboxControl({ ...options, ...parts, awaitHosts, wakeHost, createTimeoutMs });
}

/** After what time a create that found no room may find some. */
const RETRY_AFTER_MS = 2000;
