import type { DrainPlan, InstanceRow } from "../../store/store.ts";
import type { World } from "./phase.ts";
import type { InstanceView } from "../registry/instance-view.ts";

export const NOW_MS = 10_000_000;

export const plan = (changes: Partial<DrainPlan> = {}): DrainPlan => ({
  reason: "operator",
  sinceMs: NOW_MS - 1000,
  deadlineMs: NOW_MS + 1000,
  sessions: "keep",
  ...changes,
});

/** A ready, empty instance that has long been up; `row` and the rest override parts of it. */
export function view(
  instanceId: string,
  { row, ...changes }: Partial<Omit<InstanceView, "row">> & { readonly row?: Partial<InstanceRow> } = {},
): InstanceView {
  return {
    row: {
      instanceId,
      admission: "open",
      labels: {},
      createdAtMs: 0,
      image: "image-1",
      drain: undefined,
      goal: "running",
      hasAnswered: true,
      version: 1,
      ...row,
    },
    machine: { state: "running", launchedAtMs: 0, interruption: undefined },
    missedLists: 0,
    isAnswering: true,
    health: "healthy",
    goodInRow: 10,
    badInRow: 0,
    sessions: 0,
    idleSinceMs: NOW_MS,
    terminateTries: 0,
    ...changes,
  };
}

/** A machine that was launched a second ago and has not answered yet. */
export const booting = (instanceId: string): InstanceView =>
  view(instanceId, {
    row: { hasAnswered: false, createdAtMs: NOW_MS - 1000 },
    machine: { state: "pending", launchedAtMs: NOW_MS - 1000, interruption: undefined },
    isAnswering: false,
    health: "unknown",
    goodInRow: 0,
  });

/** A host that does not answer any more. */
export const silent = { health: "unknown", goodInRow: 0, badInRow: 5 } as const;

export function world(instances: readonly InstanceView[], changes: WorldChanges = {}): World {
  const { policy, ...rest } = changes;
  return {
    nowMs: NOW_MS,
    policy: {
      minInstances: 0,
      maxInstances: 10,
      warmPoolTarget: 0,
      idleCooldownMs: 60_000,
      provisionTimeoutMs: 300_000,
      drainTimeoutMs: 600_000,
      maxConcurrentProvisions: 3,
      healthyThreshold: 3,
      unhealthyThreshold: 3,
      maxTerminateRetries: 5,
      ...policy,
    },
    capabilities: { launch: "supported", stopStart: "supported" },
    instances,
    waitingCreates: 0,
    predictedInstances: 0,
    defaultImage: "image-1",
    ...rest,
  };
}

export type WorldChanges = Partial<Omit<World, "policy">> & { readonly policy?: Partial<World["policy"]> };
