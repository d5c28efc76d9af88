import { begunDrain, isOpen } from "../registry/drain-plan.ts";
import type { InstanceView } from "./phase.ts";

/** Lists without a machine after which it counts as lost, though not as ended. */
export const LOST_AFTER_LISTS = 3;

/** The fleet still wants it, or does not know that it is gone. */
export const isKept = ({ row }: InstanceView): boolean => row.goal !== "terminated";

/** Its machine is there no longer, for certain. */
export const isEnded = ({ machine }: InstanceView): boolean => machine?.state === "terminated";

/** Its maker has not listed it for a while: it may be there all the same. One that boots may be listed later. */
export const isLost = (view: InstanceView): boolean =>
  view.missedLists >= LOST_AFTER_LISTS && (view.answered === "no" || view.health === "unknown") && !isBooting(view);

/** Launched, and its host has never answered: it counts as capacity to come. */
export const isBooting = (view: InstanceView): boolean =>
  view.row.goal === "running" &&
  view.row.everAnswered === "no" &&
  view.answered === "no" &&
  !isEnded(view) &&
  begunDrain(view.row) === undefined;

/** On its way out, or at least not to be relied on: whatever the reason but an illness that may pass. */
export const isLeaving = (view: InstanceView): boolean => {
  const drain = begunDrain(view.row);
  return view.row.goal !== "running" || isEnded(view) || (drain !== undefined && drain.reason !== "health");
};

/** Its host has just answered and said that it is well enough. */
export const isWell = ({ answered, health }: InstanceView): boolean =>
  answered === "yes" && (health === "healthy" || health === "degraded");

/** Takes new sandboxes. */
export const isServing = (view: InstanceView): boolean => isOpen(view.row) && isWell(view) && !isEnded(view);

/** Serves, and holds nothing. */
export const isWarm = (view: InstanceView): boolean => isServing(view) && view.sessions === 0;

export const count = (views: readonly InstanceView[], is: (view: InstanceView) => boolean): number =>
  views.reduce((sum, view) => (is(view) ? sum + 1 : sum), 0);
