import type { Action, Phase } from "./phase.ts";
import { isEnded, isLost, type InstanceView } from "../registry/instance-view.ts";

/**
 * Forgets machines that have ended, and reports those that their maker does not list any more. A list that lacks
 * a machine proves its end only if that end was asked for.
 */
export const gc: Phase = ({ instances }) => instances.flatMap(settle);

function settle(view: InstanceView): readonly Action[] {
  const { instanceId, goal } = view.row;
  if (isEnded(view)) return [{ kind: "forget", instanceId }];
  if (!isLost(view)) return [];
  if (goal === "terminated") return [{ kind: "forget", instanceId }];
  return [{ kind: "report", instanceId, message: "its machine is not listed any more; it stays on record" }];
}
