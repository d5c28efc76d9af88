import type { Interruption, MachineState, ProvisionerCapabilities } from "../../provisioner/provisioner.ts";
import type { DrainPlan, DrainReason, InstanceRow } from "../../store/store.ts";

/** What the control loop is told to keep to. All are honoured both ways: up and down. */
export interface FleetPolicy {
  readonly minInstances: number;
  readonly maxInstances: number;
  /** How many ready instances without sandboxes are kept at least; the recent rate of creates may ask for more. */
  readonly warmPoolTarget: number;
  readonly idleCooldownMs: number;
  readonly provisionTimeoutMs: number;
  readonly drainTimeoutMs: number;
  readonly maxConcurrentProvisions: number;
  /** Answers in a row that count as well, and as ill. */
  readonly healthyThreshold: number;
  readonly unhealthyThreshold: number;
  /** After so many failed ends of a machine people are told. */
  readonly maxTerminateRetries: number;
}

/** One instance as the loop sees it at one moment. */
export interface InstanceView {
  readonly row: InstanceRow;
  /** Undefined where the maker's list does not have it: that is no proof of its end. */
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
  readonly answered: "yes" | "no";
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

export interface World {
  readonly nowMs: number;
  readonly policy: FleetPolicy;
  readonly capabilities: ProvisionerCapabilities;
  readonly instances: readonly InstanceView[];
  /** Creates that wait for room. */
  readonly waitingCreates: number;
  /** Instances that the creates of the last minutes would fill while one boots. */
  readonly predictedInstances: number;
  readonly defaultImage: string;
}

/** What a phase wants done. Each may be repeated, and none is done twice at once for one instance. */
export type Action =
  | { readonly kind: "launch"; readonly image: string; readonly why: string }
  | { readonly kind: "drain"; readonly instanceId: string; readonly plan: DrainPlan }
  | { readonly kind: "undrain"; readonly instanceId: string }
  /** Pauses what still runs on a draining instance. */
  | { readonly kind: "pause_sessions"; readonly instanceId: string }
  | { readonly kind: "stop"; readonly instanceId: string }
  | { readonly kind: "start"; readonly instanceId: string }
  /** `empty` asks the host once more and ends nothing that holds a session; `discard` was said by an operator. */
  | { readonly kind: "terminate"; readonly instanceId: string; readonly proof: "empty" | "discard" | "never_came_up" }
  /** The machine is gone for certain. */
  | { readonly kind: "forget"; readonly instanceId: string }
  /** People should know. */
  | { readonly kind: "report"; readonly instanceId: string; readonly message: string };

/** A step of the loop: pure, level-triggered, decides on one look at the world. */
export type Phase = (world: World) => readonly Action[];

/** In the order in which they run; each sees what those before it have done. */
export interface Phases {
  readonly health: Phase;
  readonly recovery: Phase;
  readonly scaleUp: Phase;
  readonly scaleDown: Phase;
  readonly drain: Phase;
  readonly terminate: Phase;
  readonly gc: Phase;
}

export type { DrainPlan, DrainReason };
