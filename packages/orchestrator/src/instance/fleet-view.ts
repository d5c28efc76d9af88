/** What an instance is doing, as the fleet sees it: what its maker says and what its host says together. */
export type InstanceState = "provisioning" | "ready" | "active" | "draining" | "stopped" | "terminating";

export interface FleetInstance {
  readonly instanceId: string;
  readonly state: InstanceState;
  readonly cordoned: boolean;
  readonly url: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly launchedAtMs: number;
  /** `unknown` where the host did not answer the last question. */
  readonly health: "healthy" | "degraded" | "unhealthy" | "unknown";
  readonly sessionCount: number;
  /** 0 means no limit. */
  readonly maxSessions: number;
  readonly poolAvailableBytes: number;
  /** What needs attention; empty where nothing does. */
  readonly message: string;
}

/** The fleet's instances as they are known at this moment, by id. */
export interface FleetView {
  readonly fleetId: string;
  instances(): readonly FleetInstance[];
}
