import { begunDrain } from "../registry/drain-plan.ts";
import type { Action, InstanceSight, Phase, World } from "./phase.ts";
import { isEnded, isLost } from "./sight.ts";

/**
 * Ends machines that have been emptied, that an operator gave up with what they hold, or that never came up. Ends that
 * do not come about are asked for again. A host that has answered once is never ended for its silence.
 */
export const terminate: Phase = (world) => {
  if (world.capabilities.launch === "unsupported") return world.instances.flatMap((sight) => cannotEnd(sight, world));
  return world.instances.flatMap((sight) => end(sight, world));
};

function end(sight: InstanceSight, world: World): readonly Action[] {
  const { instanceId, goal } = sight.row;
  if (isEnded(sight)) return [];
  if (goal === "terminated") return endAgain(sight, world);
  const proof = proofOf(sight, world);
  return proof === undefined ? [] : [{ kind: "terminate", instanceId, proof }];
}

function proofOf(sight: InstanceSight, world: World): "empty" | "discard" | "never_came_up" | undefined {
  const plan = begunDrain(sight.row);
  if (plan?.sessions === "discard" && world.nowMs >= plan.deadlineMs) return "discard";
  if (sight.row.goal !== "running" || sight.sessions > 0) return undefined;
  if (plan !== undefined && plan.reason !== "health" && saysSo(sight)) return "empty";
  return neverCameUp(sight, world) ? "never_came_up" : undefined;
}

/** Its host has just answered, be it well or ill. */
const saysSo = (sight: InstanceSight): boolean => sight.answered === "yes" && sight.health !== "unknown";

const neverCameUp = ({ row, answered }: InstanceSight, { nowMs, policy }: World): boolean =>
  row.everAnswered === "no" && answered === "no" && nowMs - row.createdAtMs >= policy.provisionTimeoutMs;

function endAgain(sight: InstanceSight, { policy }: World): readonly Action[] {
  const { instanceId } = sight.row;
  if (isLost(sight)) return [];
  const again: Action = { kind: "terminate", instanceId, proof: "empty" };
  if (sight.terminateTries < policy.maxTerminateRetries) return [again];
  const message = `is still there after its end was asked for ${String(sight.terminateTries)} times`;
  return [again, { kind: "report", instanceId, message }];
}

function cannotEnd(sight: InstanceSight, { nowMs }: World): readonly Action[] {
  const plan = begunDrain(sight.row);
  if (plan?.sessions !== "discard" || nowMs < plan.deadlineMs) return [];
  const message = "is drained; its machine is not made by the fleet and is not ended by it";
  return [{ kind: "report", instanceId: sight.row.instanceId, message }];
}
