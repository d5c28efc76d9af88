import type { ProvisionerCapabilities } from "../../provisioner/provisioner.ts";
import { begunDrain } from "../registry/drain-plan.ts";
import type { InstanceRegistry } from "../registry/instance-registry.ts";
import type { InstanceSight } from "../loop/phase.ts";
import { count, isBooting, isEnded, isKept, isLeaving, isWell } from "../loop/sight.ts";

export interface HopeOptions {
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
export function createHope({ registry, capabilities, maxInstances, unhealthyThreshold, bootTimeMs }: HopeOptions) {
  const mayServeSoon = (sight: InstanceSight): boolean => {
    if (isLeaving(sight) || sight.answered === "no" || sight.row.admission === "cordoned") return false;
    const isRecovering = begunDrain(sight.row) !== undefined && isWell(sight);
    return isRecovering || (sight.health === "unknown" && sight.badInRow < unhealthyThreshold);
  };
  return (leftMs: number): string | undefined => {
    if (registry.allIds().some((instanceId) => registry.isComing(instanceId))) return undefined;
    const sights = registry.sights(() => 0);
    if (sights.some(mayServeSoon)) return undefined;
    if (capabilities.launch === "unsupported") return "the fleet cannot grow";
    if (sights.some(isBooting)) return undefined;
    if (count(sights, (sight) => isKept(sight) && !isEnded(sight)) >= maxInstances) return "the fleet may not grow";
    return leftMs < bootTimeMs ? "a further instance would come too late" : undefined;
  };
}
