import type { DrainReason } from "../store/store.ts";

/** What an instance is doing, as the fleet sees it: what its maker says and what its host says together. */
export type InstanceState = "provisioning" | "ready" | "active" | "draining" | "stopped" | "terminating";

export interface FleetInstance {
  readonly instanceId: string;
  readonly state: InstanceState;
  /** Why it is being emptied; undefined if it is not. */
  readonly drainReason: DrainReason | undefined;
  readonly cordoned: boolean;
  readonly url: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly image: string;
  readonly launchedAtMs: number;
  /** `unknown` if the host did not answer the last question. */
  readonly health: "healthy" | "degraded" | "unhealthy" | "unknown";
  readonly sessionCount: number;
  /** 0 means no limit. */
  readonly maxSessions: number;
  readonly poolAvailableBytes: number;
  /** What needs attention; empty if nothing does. */
  readonly message: string;
}

export type FleetChange =
  | { readonly kind: "changed"; readonly instance: FleetInstance }
  | { readonly kind: "removed"; readonly instance: FleetInstance }
  /** The reader was too slow: what came between is lost, the list is to be read again. */
  | { readonly kind: "overflow" };

/** The fleet's instances as they are known at this moment, by id. */
export interface FleetView {
  readonly fleetId: string;
  instances(): readonly FleetInstance[];
  /** Each change from the moment of the call on, until the signal ends it. What a slow reader holds back is bounded. */
  changes(call: { readonly signal: AbortSignal }): AsyncIterable<FleetChange>;
}

export interface DrainRequest {
  readonly instanceId: string;
  /** Undefined means the fleet's. */
  readonly timeoutMs: number | undefined;
  readonly sessions: "keep" | "discard";
}

/**
 * What an operator may ask of the fleet. Each answers when the wish is on record; the control loop, wherever it runs,
 * fulfils it. An unknown instance is `INSTANCE_NOT_FOUND`.
 */
export interface FleetOperations {
  cordon(instanceId: string, call: { readonly signal: AbortSignal }): Promise<FleetInstance>;
  /** Ends a drain too, unless the instance is already on its way out. */
  uncordon(instanceId: string, call: { readonly signal: AbortSignal }): Promise<FleetInstance>;
  drain(request: DrainRequest, call: { readonly signal: AbortSignal }): Promise<FleetInstance>;
  /** Empty `image` means the configured one. */
  refresh(
    request: { readonly image: string },
    call: { readonly signal: AbortSignal },
  ): Promise<{ readonly replacing: readonly string[]; readonly skipped: readonly string[] }>;
}
