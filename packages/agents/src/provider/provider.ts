import type { Launcher, LaunchSpec } from "./launch/launcher.ts";
import type { Backend, PersistenceMode, Resolved } from "./profile/resolved.ts";
import type { SyncOptions, SyncResult } from "./sync/sync-types.ts";
import type { PermissionMode } from "./tool-host/permission.ts";
import type { ToolHost } from "./tool-host/tool-host.ts";

export type {
  Backend,
  DaytonaConfig,
  DaytonaStartupSource,
  NetworkPolicy,
  PersistenceMode,
  Resolved,
  SyncMode,
} from "./profile/resolved.ts";
export type { SyncDirection, SyncOptions, SyncReason, SyncResult } from "./sync/sync-types.ts";
export type { Handle, Launcher, LaunchSpec } from "./launch/launcher.ts";
export type { ToolHost } from "./tool-host/tool-host.ts";

/** What every call of a provider takes. */
export interface ProviderCall {
  readonly signal?: AbortSignal;
}

/**
 * What a provider keeps for itself in a session's state: JSON with the version of its shape. Nobody but the provider
 * that wrote it looks inside.
 */
export interface ProviderState {
  readonly version: number;
  readonly [key: string]: unknown;
}

/** The life of a session's runtime; written before `prepare` as `creating`, so that a crash leaves a trace. */
export type RuntimeState = "creating" | "prepared" | "stopped" | "archived" | "destroyed";

/** What is persisted of a session's runtime. */
export interface SessionState {
  /** Made fresh before the first `prepare`; with the session's id it is the identity that labels carry. */
  readonly sandboxId: string;
  readonly backend: Backend;
  readonly profile: string;
  readonly state: RuntimeState;
  /** The provider's own id of the runtime; empty until it is known. */
  readonly instanceId: string;
  readonly runtimeRootDir: string;
  readonly runtimeAdditionalDirs: readonly string[];
  readonly providerState: ProviderState | undefined;
  /** When the access that `prepare` got runs out, if it does. */
  readonly sshAccessExpiresAt: Date | undefined;
  readonly preparedAt: Date | undefined;
}

/** Who a runtime belongs to. */
export interface SandboxIdentity {
  readonly sessionId: string;
  readonly workspaceId: string;
  readonly sandboxId: string;
  readonly localRootDir: string;
  readonly localAdditionalDirs: readonly string[];
  readonly sandbox: Resolved;
  readonly providerState?: ProviderState | undefined;
}

/** A session to prepare a runtime for. */
export interface PrepareRequest extends SandboxIdentity {
  /** The runtime that the session had before; empty if none is known. */
  readonly instanceId: string;
  /** The agent's command line; words are split and quoted as in a shell, nothing is expanded. */
  readonly agentCommand: string;
  /** The agent's variables. Which of them go into a remote runtime is the provider's policy. */
  readonly agentEnv: Readonly<Record<string, string>>;
  readonly permissions: PermissionMode;
  /** What the agent needs to go on with its last ACP session; empty for a new one. */
  readonly resumeAcpState: string;
}

/** The identity by which a runtime is looked for. */
export interface FindSandboxRequest extends SandboxIdentity {
  readonly labels: Readonly<Record<string, string>>;
}

/** A runtime that is ready for an agent. */
export interface Prepared {
  readonly state: SessionState;
  readonly runtimeRootDir: string;
  readonly runtimeAdditionalDirs: readonly string[];
  readonly launcher: Launcher;
  readonly launch: LaunchSpec;
  readonly toolHost: ToolHost;
  /** What the provider could not do as the profile asks, if the profile does not insist. */
  readonly warnings: readonly string[];
}

/** How a runtime is ended. */
export interface DestroyOptions extends ProviderCall {
  /** Instead of what the profile said at `prepare`: `transient` removes a runtime for good that would be kept. */
  readonly persistence?: PersistenceMode;
}

/** Makes, fills and removes the runtimes of one backend. Failures are `SandboxError`s. */
export interface Provider {
  backend(): Backend;
  prepare(request: PrepareRequest, options?: ProviderCall): Promise<Prepared>;
  syncToRuntime(state: SessionState, options: SyncOptions): Promise<SyncResult>;
  syncFromRuntime(state: SessionState, options: SyncOptions): Promise<SyncResult>;
  /** Ends the runtime as the profile's persistence says, and returns what it is now. Without effect on one that is gone. */
  destroy(state: SessionState, options?: DestroyOptions): Promise<SessionState>;
}

/** A provider that finds a runtime whose making was cut short, by the labels that carry its identity. */
export interface Finder {
  /** REMOTE_SANDBOX_NOT_FOUND where there is none. */
  findSandbox(request: FindSandboxRequest, options?: ProviderCall): Promise<SessionState>;
}

/** Whether a provider can look for runtimes by their labels. */
export function isFinder(provider: Provider): provider is Provider & Finder {
  return "findSandbox" in provider && typeof provider.findSandbox === "function";
}
