import type { ProvisionerCapabilities } from "../../provisioner/provisioner.ts";
import type { DrainPlan } from "../../store/store.ts";
import type { InstanceView } from "../registry/instance-view.ts";

/** What the control loop keeps to. All are honoured both ways: up and down. */
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
  /** So many failed ends of a machine are reported to people. */
  readonly maxTerminateRetries: number;
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
  /** To be reported to operators. */
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
