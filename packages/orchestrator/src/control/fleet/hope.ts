import type { ProvisionerCapabilities } from "../../instance/provisioner.ts";
import type { InstanceRegistry } from "./instance-registry.ts";
import { count, isBooting, isEnded, isKept } from "./loop/sight.ts";

export interface HopeOptions {
  readonly registry: InstanceRegistry;
  readonly capabilities: ProvisionerCapabilities;
  readonly maxInstances: number;
  /** How long a machine takes from its launch to its first answer, about. */
  readonly bootTimeMs: number;
}

/** Why no room will come for a create that has `leftMs`: undefined where a machine boots or comes back, or one may be launched in time. */
export function createHope({ registry, capabilities, maxInstances, bootTimeMs }: HopeOptions) {
  return (leftMs: number): string | undefined => {
    if (registry.allIds().some((instanceId) => registry.isComing(instanceId))) return undefined;
    const sights = registry.sights(() => 0);
    if (capabilities.launch === "unsupported") return "the fleet cannot grow";
    if (sights.some(isBooting)) return undefined;
    if (count(sights, (sight) => isKept(sight) && !isEnded(sight)) >= maxInstances) return "the fleet may not grow";
    return leftMs < bootTimeMs ? "a further instance would come too late" : undefined;
  };
}
