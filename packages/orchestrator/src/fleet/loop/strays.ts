import type { Action, InstanceSight, Phase } from "./phase.ts";
import { isEnded, isLost } from "./sight.ts";

/**
 * Forgets machines that have ended, and tells people of those that their maker does not list any more. A list that lacks
 * a machine proves its end only where that end was asked for.
 */
export const strays: Phase = ({ instances }) => instances.flatMap(settle);

function settle(sight: InstanceSight): readonly Action[] {
  const { instanceId, goal } = sight.row;
  if (isEnded(sight)) return [{ kind: "forget", instanceId }];
  if (!isLost(sight)) return [];
  if (goal === "terminated") return [{ kind: "forget", instanceId }];
  return [{ kind: "report", instanceId, message: "its machine is not listed any more; it stays on record" }];
}
