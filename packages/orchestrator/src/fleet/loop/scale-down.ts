import type { Action, Phase, World } from "./phase.ts";
import { count, isLeaving, isServing, isWarm } from "../registry/instance-view.ts";

/**
 * Gives back machines that have long been empty, as long as enough warm ones and enough at all remain. Where there are
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
