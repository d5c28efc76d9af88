import { begunDrain, isOpen } from "../registry/drain-plan.ts";
import type { InstanceSight } from "./phase.ts";

/** Lists without a machine after which it counts as lost, though not as ended. */
export const LOST_AFTER_LISTS = 3;

/** The fleet still wants it, or does not know that it is gone. */
export const isKept = ({ row }: InstanceSight): boolean => row.goal !== "terminated";

/** Its machine is there no longer, for certain. */
export const isEnded = ({ machine }: InstanceSight): boolean => machine?.state === "terminated";

/** Its maker has not listed it for a while: it may be there all the same. One that boots may be listed later. */
export const isLost = (sight: InstanceSight): boolean =>
  sight.missedLists >= LOST_AFTER_LISTS && (sight.answered === "no" || sight.health === "unknown") && !isBooting(sight);

/** Launched, and its host has never answered: it counts as capacity to come. */
export const isBooting = (sight: InstanceSight): boolean =>
  sight.row.goal === "running" &&
  sight.row.everAnswered === "no" &&
  sight.answered === "no" &&
  !isEnded(sight) &&
  begunDrain(sight.row) === undefined;

/** On its way out, or at least not to be relied on: whatever the reason but an illness that may pass. */
export const isLeaving = (sight: InstanceSight): boolean => {
  const drain = begunDrain(sight.row);
  return sight.row.goal !== "running" || isEnded(sight) || (drain !== undefined && drain.reason !== "health");
};

/** Its host has just answered and said that it is well enough. */
export const isWell = ({ answered, health }: InstanceSight): boolean =>
  answered === "yes" && (health === "healthy" || health === "degraded");

/** Takes new sandboxes. */
export const isServing = (sight: InstanceSight): boolean => isOpen(sight.row) && isWell(sight) && !isEnded(sight);

/** Serves, and holds nothing. */
export const isWarm = (sight: InstanceSight): boolean => isServing(sight) && sight.sessions === 0;

export const count = (sights: readonly InstanceSight[], is: (sight: InstanceSight) => boolean): number =>
  sights.reduce((sum, sight) => (is(sight) ? sum + 1 : sum), 0);
