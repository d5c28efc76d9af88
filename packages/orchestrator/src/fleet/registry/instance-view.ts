import { begunDrain, isOpen } from "./drain-plan.ts";
import type { Interruption, MachineState } from "../../provisioner/provisioner.ts";
import type { InstanceRow } from "../../store/store.ts";

/** One instance as the loop sees it at one moment. */
export interface InstanceView {
  readonly row: InstanceRow;
  /** Undefined if the maker's list does not have it: that is no proof of its end. */
  readonly machine:
    | {
        readonly state: MachineState;
        readonly launchedAtMs: number;
        readonly interruption: Interruption | undefined;
      }
    | undefined;
  /** Since when the maker's list lacks it, in rounds that did answer. */
  readonly missedLists: number;
  /** Whether its host has answered since the machine last started. */
  readonly isAnswering: boolean;
  /** The last answer, or that there was none. An ill host says so itself. */
  readonly health: "healthy" | "degraded" | "unhealthy" | "unknown";
  readonly goodInRow: number;
  readonly badInRow: number;
  /** By the host's last report plus what was promised since: never under the truth. */
  readonly sessions: number;
  /** When it last had sandboxes or came up. */
  readonly idleSinceMs: number;
  readonly terminateTries: number;
}

/** Lists without a machine after which it counts as lost, though not as ended. */
export const LOST_AFTER_LISTS = 3;

/** The fleet still wants it, or does not know that it is gone. */
export const isKept = ({ row }: InstanceView): boolean => row.goal !== "terminated";

/** Its machine is there no longer, for certain. */
export const isEnded = ({ machine }: InstanceView): boolean => machine?.state === "terminated";

/** Its maker has not listed it for a while: it may be there all the same. One that boots may be listed later. */
export const isLost = (view: InstanceView): boolean =>
  view.missedLists >= LOST_AFTER_LISTS && (!view.isAnswering || view.health === "unknown") && !isBooting(view);

/** Launched, and its host has never answered: it counts as capacity to come. */
export const isBooting = (view: InstanceView): boolean =>
  view.row.goal === "running" &&
  !view.row.hasAnswered &&
  !view.isAnswering &&
  !isEnded(view) &&
  begunDrain(view.row) === undefined;

/** On its way out, or at least not to be relied on: whatever the reason but an illness that may pass. */
export const isLeaving = (view: InstanceView): boolean => {
  const drain = begunDrain(view.row);
  return view.row.goal !== "running" || isEnded(view) || (drain !== undefined && drain.reason !== "health");
};

/** Its host has just answered and said that it is well enough. */
export const isWell = ({ isAnswering, health }: InstanceView): boolean =>
  isAnswering && (health === "healthy" || health === "degraded");

/** Takes new sandboxes. */
export const isServing = (view: InstanceView): boolean => isOpen(view.row) && isWell(view) && !isEnded(view);

/** Serves, and holds nothing. */
export const isWarm = (view: InstanceView): boolean => isServing(view) && view.sessions === 0;

export const count = (views: readonly InstanceView[], is: (view: InstanceView) => boolean): number =>
  views.reduce((sum, view) => (is(view) ? sum + 1 : sum), 0);
