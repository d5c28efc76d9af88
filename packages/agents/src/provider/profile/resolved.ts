import type { Secret } from "@turnbox/client";

/** The backends that Turnbox knows by name. Other people's carry the prefix `x-`. */
export const KNOWN_BACKENDS = ["local", "turnbox", "daytona", "e2b"] as const;
/** Where a session runs; other people's backends are named `x-...`. */
export type Backend = (typeof KNOWN_BACKENDS)[number] | `x-${string}`;

const OWN_BACKEND = /^x-[a-z0-9][a-z0-9-]{0,30}$/;

/** Whether this is the name of a backend, of ours or of another provider. */
export function isBackend(value: unknown): value is Backend {
  if (typeof value !== "string") return false;
  return (KNOWN_BACKENDS as readonly string[]).includes(value) || OWN_BACKEND.test(value);
}

/** The backend if no profile selects one. */
export const DEFAULT_BACKEND = "local" satisfies Backend;

export const SYNC_MODES = ["none", "session-bidirectional", "turn-bidirectional"] as const;
/**
 * How the workspace and the runtime are kept alike: not at all; in at the start and out at the stop; or besides at the
 * boundaries of each turn.
 */
export type SyncMode = (typeof SYNC_MODES)[number];

export const PERSISTENCE_MODES = ["transient", "reuse", "archive"] as const;
/** What becomes of the runtime when the session stops: destroyed, kept as it is, or archived if that is possible. */
export type PersistenceMode = (typeof PERSISTENCE_MODES)[number];

/** Who the runtime may talk to, independent of the provider. */
export interface NetworkPolicy {
  readonly allowPublicIngress: boolean;
  readonly allowOutbound: boolean;
  readonly allowList: readonly string[];
  readonly denyList: readonly string[];
  /** A provider that cannot enforce the policy fails, instead of warning. */
  readonly required: boolean;
}

export const DAYTONA_STARTUP_SOURCES = ["image", "snapshot"] as const;
/** Which of the two startup inputs counts. */
export type DaytonaStartupSource = (typeof DAYTONA_STARTUP_SOURCES)[number];

/** What only the backend `daytona` takes. */
export interface DaytonaConfig {
  readonly apiUrl: string;
  readonly target: string;
  readonly image: string;
  readonly snapshot: string;
  readonly class: string;
  /** How long it idles before it is stopped, as a duration (`15m`); empty leaves it to Daytona. */
  readonly autoStop: string;
  readonly autoArchive: string;
  readonly startupSource: DaytonaStartupSource;
  /** The image or snapshot that `startupSource` points at. */
  readonly startupRef: string;
}

/** The profile that a workspace selected, with defaults filled in and every rule checked. */
export interface Resolved {
  readonly profile: string;
  readonly backend: Backend;
  readonly syncMode: SyncMode;
  readonly persistence: PersistenceMode;
  /** Where the workspace is inside the runtime; empty leaves it to the provider. */
  readonly runtimeRootDir: string;
  readonly destroyOnStop: boolean;
  readonly env: Readonly<Record<string, string>>;
  readonly secretEnv: Readonly<Record<string, Secret>>;
  readonly network: NetworkPolicy;
  readonly daytona: DaytonaConfig | undefined;
}
