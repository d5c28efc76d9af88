import type { Action, Phase, World } from "./phase.ts";
import { count, isBooting, isEnded, isKept, isLeaving, isLost, isWarm } from "../registry/instance-view.ts";

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
