import { begunDrain } from "../registry/drain-plan.ts";
import type { Action, Phase, World } from "./phase.ts";
import type { InstanceView } from "../registry/instance-view.ts";

/** How long before its maker takes a machine back its sandboxes are paused. */
const INTERRUPTION_MARGIN_MS = 30_000;

/**
 * Keeps new sandboxes off hosts that are ill, silent or about to be taken back. An ill or silent one is only cordoned by
 * that: nothing ends because a host did not answer.
 */
export const health: Phase = (world) => world.instances.flatMap((view) => judge(view, world));

function judge(view: InstanceView, { nowMs, policy }: World): readonly Action[] {
  const { row, machine } = view;
  if (row.goal !== "running") return [];
  const { instanceId } = row;
  const drain = begunDrain(row);
  if (machine?.interruption !== undefined && drain?.reason !== "interruption") {
    const lastMs = machine.interruption.atMs - INTERRUPTION_MARGIN_MS;
    const deadlineMs = Math.max(nowMs, Math.min(nowMs + policy.drainTimeoutMs, lastMs));
    const sessions = drain?.sessions ?? "keep";
    return [{ kind: "drain", instanceId, plan: { reason: "interruption", sinceMs: nowMs, deadlineMs, sessions } }];
  }
  const isIll = row.hasAnswered && view.badInRow >= policy.unhealthyThreshold;
  if (!isIll || drain !== undefined) return [];
  const deadlineMs = nowMs + policy.drainTimeoutMs;
  return [{ kind: "drain", instanceId, plan: { reason: "health", sinceMs: nowMs, deadlineMs, sessions: "keep" } }];
}

/**
 * Takes hosts back that have become well again, and starts machines that should run and do not. A drain for any reason
 * but health goes on.
 */
export const recovery: Phase = (world) => world.instances.flatMap((view) => recover(view, world));

function recover(view: InstanceView, { policy, capabilities }: World): readonly Action[] {
  const { row, machine, goodInRow } = view;
  if (row.goal !== "running") return [];
  const { instanceId } = row;
  const drain = begunDrain(row);
  if (drain?.reason === "health" && goodInRow >= policy.healthyThreshold) return [{ kind: "undrain", instanceId }];
  const isDown = machine?.state === "stopped" && drain?.reason !== "interruption";
  return isDown && capabilities.stopStart === "supported" ? [{ kind: "start", instanceId }] : [];
}
