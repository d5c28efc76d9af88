import type { ProvisionerCapabilities } from "../../provisioner/provisioner.ts";
import { begunDrain } from "../registry/drain-plan.ts";
import type { InstanceRegistry } from "../registry/instance-registry.ts";
import { count, isBooting, isEnded, isKept, isLeaving, isWell, type InstanceView } from "../registry/instance-view.ts";

export interface WaitingPolicyOptions {
  readonly registry: InstanceRegistry;
  readonly capabilities: ProvisionerCapabilities;
  readonly maxInstances: number;
  /** Questions in a row without a good answer that count as an illness. */
  readonly unhealthyThreshold: number;
  /** How long a machine takes from its launch to its first answer, about. */
  readonly bootTimeMs: number;
}

/**
 * Why no room will come for a create that has `leftMs`: undefined if a machine boots or comes back, a host has only been silent for
 * a moment or is just recovering, or one may be launched in time.
 */
export function createWaitingPolicy({
  registry,
  capabilities,
  maxInstances,
  unhealthyThreshold,
  bootTimeMs,
}: WaitingPolicyOptions) {
  const mayServeSoon = (view: InstanceView): boolean => {
    if (isLeaving(view) || !view.isAnswering || view.row.admission === "cordoned") return false;
    const isRecovering = begunDrain(view.row) !== undefined && isWell(view);
    return isRecovering || (view.health === "unknown" && view.badInRow < unhealthyThreshold);
  };
  return (leftMs: number): string | undefined => {
    if (registry.allIds().some((instanceId) => registry.isComing(instanceId))) return undefined;
    const views = registry.views(() => 0);
    if (views.some(mayServeSoon)) return undefined;
    if (capabilities.launch === "unsupported") return "the fleet cannot grow";
    if (views.some(isBooting)) return undefined;
    if (count(views, (view) => isKept(view) && !isEnded(view)) >= maxInstances) return "the fleet may not grow";
    return leftMs < bootTimeMs ? "a further instance would come too late" : undefined;
  };
}
