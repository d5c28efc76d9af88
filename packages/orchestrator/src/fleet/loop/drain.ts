import type { DrainPlan } from "../../store/store.ts";
import { begunDrain } from "../registry/drain-plan.ts";
import type { Action, Phase, World } from "./phase.ts";
import { count, isBooting, isKept, isLeaving, isLost, isWell, type InstanceView } from "../registry/instance-view.ts";

/**
 * Brings drains on. Until the deadline sandboxes go on; then those that are left are paused, and their machine is stopped
 * where that keeps what it holds. Of the instances of an old image one at a time is emptied, and passed over if it
 * still holds sandboxes at its deadline.
 */
export const drain: Phase = (world) => [
  ...world.instances.flatMap((view) => advance(view, world)),
  ...beginNextRefresh(world),
];

function advance(view: InstanceView, world: World): readonly Action[] {
  const { row, machine } = view;
  const { instanceId } = row;
  if (row.goal === "stopped") return machine?.state === "running" ? [{ kind: "stop", instanceId }] : [];
  const plan = begunDrain(row);
  if (row.goal === "terminated" || plan === undefined || world.nowMs < plan.deadlineMs) return [];
  return plan.sessions === "keep" && view.sessions > 0 ? atDeadline(view, plan, world) : [];
}

/** At the deadline of a drain that keeps the sandboxes that are left. */
function atDeadline(view: InstanceView, { reason }: DrainPlan, { capabilities }: World): readonly Action[] {
  const { instanceId } = view.row;
  const left = `${String(view.sessions)} sandboxes at the end of the drain`;
  if (reason === "health") return [{ kind: "report", instanceId, message: `ill for long, with ${left}` }];
  if (!isWell(view) && view.health !== "unhealthy") {
    return [{ kind: "report", instanceId, message: `does not answer; it may hold ${left}` }];
  }
  if (reason === "refresh") {
    return [
      { kind: "report", instanceId, message: `keeps its old image: ${left}` },
      { kind: "undrain", instanceId },
    ];
  }
  if (capabilities.stopStart === "supported") {
    return [
      { kind: "pause_sessions", instanceId },
      { kind: "stop", instanceId },
    ];
  }
  return [
    { kind: "pause_sessions", instanceId },
    { kind: "report", instanceId, message: `stays draining: ${left}` },
  ];
}

function beginNextRefresh(world: World): readonly Action[] {
  const { instances, nowMs, policy } = world;
  const refreshing = instances.filter(({ row }) => row.drain?.reason === "refresh");
  const [next] = refreshing
    .filter(({ row }) => row.goal === "running" && begunDrain(row) === undefined)
    .sort((a, b) => (a.row.instanceId < b.row.instanceId ? -1 : 1));
  const isBusy = refreshing.some(({ row }) => begunDrain(row) !== undefined) || instances.some(isBooting);
  if (next?.row.drain === undefined || isBusy || isToGrow(world)) return [];
  const plan: DrainPlan = { ...next.row.drain, sinceMs: nowMs, deadlineMs: nowMs + policy.drainTimeoutMs };
  return [{ kind: "drain", instanceId: next.row.instanceId, plan }];
}

/** Whether the fleet is smaller than its least number and will be larger soon. */
const isToGrow = ({ instances, policy }: World): boolean =>
  count(instances, (view) => !isLeaving(view) && !isLost(view)) < policy.minInstances &&
  count(instances, isKept) < policy.maxInstances;
