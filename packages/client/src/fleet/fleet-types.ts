import type { SandboxError } from "@turnbox/core";
import type { CallOptions, KeyedOptions } from "../sandbox/call.ts";

/** What an instance is doing. */
export type InstanceState =
  | "provisioning"
  | "ready"
  | "active"
  | "draining"
  | "stopped"
  | "terminating"
  /** A newer server has more of them. */
  | "unknown";

/** Why an instance is being emptied. */
export type DrainReason = "health" | "scale_down" | "operator" | "refresh" | "interruption" | "unknown";

/** A machine that runs a sandbox-host. */
export interface Instance {
  readonly id: string;
  readonly state: InstanceState;
  /** Undefined if it is not being emptied. */
  readonly drainReason: DrainReason | undefined;
  /** New sandboxes are kept off it. */
  readonly cordoned: boolean;
  /** The host's own word: `healthy`, `degraded`, `unhealthy`, or `unknown` if it did not answer. */
  readonly health: string;
  /** Undefined while its host has no address. */
  readonly url: string | undefined;
  readonly sandboxCount: number;
  /** Most sandboxes at once; undefined means no limit. */
  readonly maxSandboxes: number | undefined;
  readonly poolAvailableBytes: number;
  /** What it was launched from; empty if its maker knows no images. */
  readonly image: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly launchedAt: Date | undefined;
  /** What needs attention; empty if nothing does. */
  readonly message: string;
}

/** The fleet in numbers. */
export interface FleetStatus {
  readonly fleetId: string;
  /** Of the orchestrator. */
  readonly version: string;
  /** Instances by state. */
  readonly instances: Readonly<Record<string, number>>;
  readonly sandboxCount: number;
  /** Creates that wait for room. */
  readonly waitingCreates: number;
}

/** How an instance is emptied. */
export interface DrainOptions extends KeyedOptions {
  /** How long sandboxes may go on; the fleet's drain timeout unless given. */
  readonly graceMs?: number;
  /** What happens to those that are left: they are paused and kept, which is the default, or lost with the instance. */
  readonly sandboxes?: "keep" | "discard";
}

/** Which instances are replaced. */
export interface RefreshOptions extends KeyedOptions {
  /** The image that instances should have; the configured one unless given. */
  readonly image?: string;
}

/** What a refresh does, by instance. */
export interface Refresh {
  readonly replacing: readonly string[];
  /** They hold sandboxes that would be lost. */
  readonly skipped: readonly string[];
}

/** Something that happened to an instance. */
export interface FleetEvent {
  /** `existing`: it was there when the watch began. */
  readonly kind: "existing" | "changed" | "removed";
  /** After it; of a removed one what it was last. */
  readonly instance: Instance;
}

/** What a host has and uses. */
export interface HostStats {
  readonly at: Date;
  readonly status: "healthy" | "degraded" | "unhealthy" | "unknown";
  readonly cpus: number;
  readonly loadAverage: number;
  readonly memoryBytes: number;
  readonly memoryAvailableBytes: number;
  readonly serviceMemoryBytes: number;
  readonly sandboxCount: number;
  /** Most sandboxes at once; undefined means no limit. */
  readonly maxSandboxes: number | undefined;
  readonly activeTools: number;
  readonly poolState: string;
  readonly poolSizeBytes: number;
  readonly poolAvailableBytes: number;
  readonly errors: readonly string[];
}

/** A host's answer, or why there is none. */
export type HostReport = { readonly instanceId: string; readonly url: string } & (
  | { readonly stats: HostStats; readonly error?: undefined }
  | { readonly stats?: undefined; readonly error: SandboxError }
);

/** The machines behind the sandboxes, for their operator. */
export interface Fleet {
  status(options?: CallOptions): Promise<FleetStatus>;
  /** All of them, by id. */
  instances(options?: CallOptions): Promise<readonly Instance[]>;
  /** Keeps new sandboxes off an instance. */
  cordon(instanceId: string, options?: KeyedOptions): Promise<Instance>;
  /** Lets new sandboxes on an instance again. Ends a drain too, unless the instance is on its way out. */
  uncordon(instanceId: string, options?: KeyedOptions): Promise<Instance>;
  /** Empties an instance. Returns when that is on record. */
  drain(instanceId: string, options?: DrainOptions): Promise<Instance>;
  /** Replaces instances of an old image one by one. Returns when that is on record. */
  refresh(options?: RefreshOptions): Promise<Refresh>;
  /**
   * First each instance that exists, then each change. Gets over dropped connections: what was missed meanwhile, or because
   * the reader was too slow, is made up for by a look at the list.
   */
  watch(options?: Pick<CallOptions, "signal">): AsyncIterable<FleetEvent>;
  /**
   * What each host has and uses at this moment. Asked from the hosts themselves with the server's token, and so
   * `UNIMPLEMENTED` unless all of them are on this machine together with the server.
   */
  hosts(options?: CallOptions): Promise<readonly HostReport[]>;
}
