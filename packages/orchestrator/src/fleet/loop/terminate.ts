import { begunDrain } from "../registry/drain-plan.ts";
import type { Action, Phase, World } from "./phase.ts";
import { isEnded, isLost, type InstanceView } from "../registry/instance-view.ts";

/**
 * Ends machines that have been emptied, that an operator gave up with what they hold, or that never came up. Ends that
 * do not come about are asked for again. A host that has answered once is never ended for its silence.
 */
export const terminate: Phase = (world) => {
  if (world.capabilities.launch === "unsupported") return world.instances.flatMap((view) => cannotEnd(view, world));
  return world.instances.flatMap((view) => end(view, world));
};

function end(view: InstanceView, world: World): readonly Action[] {
  const { instanceId, goal } = view.row;
  if (isEnded(view)) return [];
  if (goal === "terminated") return endAgain(view, world);
  const proof = proofOf(view, world);
  return proof === undefined ? [] : [{ kind: "terminate", instanceId, proof }];
}

function proofOf(view: InstanceView, world: World): "empty" | "discard" | "never_came_up" | undefined {
  const plan = begunDrain(view.row);
  if (plan?.sessions === "discard" && world.nowMs >= plan.deadlineMs) return "discard";
  if (view.row.goal !== "running" || view.sessions > 0) return undefined;
  if (plan !== undefined && plan.reason !== "health" && saysSo(view)) return "empty";
  return neverCameUp(view, world) ? "never_came_up" : undefined;
}

/** Its host has just answered, be it well or ill. */
const saysSo = (view: InstanceView): boolean => view.isAnswering && view.health !== "unknown";

const neverCameUp = ({ row, isAnswering }: InstanceView, { nowMs, policy }: World): boolean =>
  !row.hasAnswered && !isAnswering && nowMs - row.createdAtMs >= policy.provisionTimeoutMs;

function endAgain(view: InstanceView, { policy }: World): readonly Action[] {
  const { instanceId } = view.row;
  if (isLost(view)) return [];
  const again: Action = { kind: "terminate", instanceId, proof: "empty" };
  if (view.terminateTries < policy.maxTerminateRetries) return [again];
  const message = `is still there after its end was asked for ${String(view.terminateTries)} times`;
  return [again, { kind: "report", instanceId, message }];
}

function cannotEnd(view: InstanceView, { nowMs }: World): readonly Action[] {
  const plan = begunDrain(view.row);
  if (plan?.sessions !== "discard" || nowMs < plan.deadlineMs) return [];
  const message = "is drained; its machine is not made by the fleet and is not ended by it";
  return [{ kind: "report", instanceId: view.row.instanceId, message }];
}
