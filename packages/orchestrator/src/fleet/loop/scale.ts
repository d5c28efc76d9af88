import type { Action, Phase, World } from "./phase.ts";
import { count, isBooting, isEnded, isKept, isLeaving, isLost, isServing, isWarm } from "../registry/instance-view.ts";

/** Launches what is missing. Machines that boot count as if they were there, so a slow boot launches nothing more. */
export const scaleUp: Phase = (world) => {
  const { instances, policy, capabilities, defaultImage } = world;
  if (capabilities.launch === "unsupported") return [];
  const room = policy.maxInstances - count(instances, (view) => isKept(view) && !isEnded(view));
  const provisions = policy.maxConcurrentProvisions - count(instances, isBooting);
  const { wanted, why } = lacking(world);
  const launches = Math.max(0, Math.min(wanted, room, provisions));
  return Array.from({ length: launches }, (): Action => ({ kind: "launch", image: defaultImage, why }));
};

function lacking(world: World): { readonly wanted: number; readonly why: string } {
  const { instances, policy, waitingCreates, predictedInstances } = world;
  const booting = count(instances, isBooting);
  const warm = count(instances, isWarm) + booting;
  const staying = count(instances, (view) => !isLeaving(view) && !isLost(view));
  const needs = [
    { wanted: waitingCreates > 0 ? 1 - warm : 0, why: "creates wait for room" },
    { wanted: policy.minInstances - staying, why: "fewer instances than the least" },
    { wanted: policy.warmPoolTarget - warm, why: "fewer warm instances than wanted" },
    { wanted: predictedInstances - warm, why: "the rate of creates" },
  ];
  return needs.reduce((most, need) => (need.wanted > most.wanted ? need : most), { wanted: 0, why: "" });
}

/**
 * Gives back machines that have long been empty, as long as enough warm ones and enough at all remain. If there are
 * more than the most, empty ones go at once. Only a host that has just answered is believed to be empty.
 */
export const scaleDown: Phase = (world) => {
  const { instances, policy, capabilities, waitingCreates, nowMs } = world;
  if (capabilities.launch === "unsupported" || waitingCreates > 0) return [];
  const warm = instances.filter(isWarm).sort((a, b) => a.idleSinceMs - b.idleSinceMs);
  const idle = count(warm, (view) => nowMs - view.idleSinceMs >= policy.idleCooldownMs);
  const surplus = warm.length - Math.max(policy.warmPoolTarget, world.predictedInstances);
  const spare = count(instances, isServing) - policy.minInstances;
  const excess = count(instances, (view) => !isLeaving(view)) - policy.maxInstances;
  const leaving = Math.min(Math.max(Math.min(surplus, idle), excess), spare);
  // The longest idle come first, so the idle ones are the head of the warm ones.
  return warm.slice(0, Math.max(0, leaving)).map((view) => giveBack(view.row.instanceId, world));
};

function giveBack(instanceId: string, { nowMs, policy }: World): Action {
  const deadlineMs = nowMs + policy.drainTimeoutMs;
  return { kind: "drain", instanceId, plan: { reason: "scale_down", sinceMs: nowMs, deadlineMs, sessions: "keep" } };
}
