export { createLocalEnvironment, type LocalEnvironmentOptions } from "./environment/local/local-environment.ts";
export {
  type ContainerRuntime,
  defaultConfig as defaultNativeSandboxConfig,
  type NativeSandboxConfig,
  type StorageBackend,
} from "./environment/native/native-sandbox-config.ts";
export {
  createNativeSandboxEnvironment,
  type NativeSandboxEnvironment,
  type NativeSandboxOptions,
} from "./environment/native/native-sandbox-environment.ts";
export {
  createProviderEnvironment,
  type ProviderEnvironmentOptions,
} from "./environment/provider/provider-environment.ts";
export type {
  EnvironmentCall,
  EnvironmentCapabilities,
  EnvironmentConfig,
  EnvironmentState,
  ExecutionEnvironment,
  SnapshotInfo,
  ToolProgress,
  ToolRequest,
  ToolResponse,
} from "./environment/execution-environment.ts";
export type { AgentSession, PromptResult } from "./provider/acp/agent-session.ts";
export {
  type AgentConnection,
  connectAgent,
  type ConnectAgentOptions,
  type NewSessionOptions,
} from "./provider/acp/connect-agent.ts";
export type { AskPermission, PermissionAnswer } from "./provider/acp/agent-permissions.ts";
export {
  type AgentSandbox,
  runAgentInSandbox,
  type SandboxAgent,
  type SandboxAgentOptions,
  type SealedPrompt,
} from "./provider/acp/run-agent-in-sandbox.ts";
export type { Handle, Launcher, LaunchExit, LaunchSpec } from "./provider/launch/launcher.ts";
export { createLocalLauncher, type LocalLauncherOptions } from "./provider/launch/local-launcher.ts";
export {
  createTurnboxLauncher,
  type LaunchingSandbox,
  type TurnboxLauncherOptions,
} from "./provider/launch/turnbox-launcher.ts";
export type { ToolHostOptions } from "./provider/tool-host/create-tool-host.ts";
export { createLocalToolHost } from "./provider/tool-host/local-tool-host.ts";
export type {
  PermissionDecision,
  PermissionMode,
  PermissionOperation,
  PermissionRequest,
  PermissionVerdict,
} from "./provider/tool-host/permission.ts";
export type {
  TerminalExit,
  TerminalOutput,
  TerminalSpec,
  TextRange,
  ToolHost,
} from "./provider/tool-host/tool-host.ts";
export { createTurnboxToolHost, type ToolSandbox } from "./provider/tool-host/turnbox-tool-host.ts";
export { createLocalProvider, type LocalProviderOptions } from "./provider/local/local-provider.ts";
export { checkNetwork, type NetworkAbility } from "./provider/network-check.ts";
export type { RawProfile } from "./provider/profile/raw-profile.ts";
export { resolveProfile } from "./provider/profile/resolve-profile.ts";
export { DEFAULT_BACKEND, isBackend, KNOWN_BACKENDS } from "./provider/profile/resolved.ts";
export {
  type Backend,
  type DaytonaConfig,
  type DaytonaStartupSource,
  type DestroyOptions,
  type Finder,
  type FindSandboxRequest,
  isFinder,
  type NetworkPolicy,
  type PersistenceMode,
  type Prepared,
  type PrepareRequest,
  type Provider,
  type ProviderCall,
  type ProviderState,
  type Resolved,
  type RuntimeState,
  type SandboxIdentity,
  type SessionState,
  type SyncDirection,
  type SyncMode,
  type SyncOptions,
  type SyncReason,
  type SyncResult,
} from "./provider/provider.ts";
export { createRegistry, type Registry } from "./provider/registry.ts";
export { IDENTITY_LABELS, identityLabels, runtimeLabels } from "./provider/session/identity-labels.ts";
export type { ProviderSession, Stopped, StopOptions } from "./provider/session/provider-session.ts";
export { type Reconciled, type ReconcileOptions, reconcileSessions } from "./provider/session/reconcile-sessions.ts";
export type { SessionOptions, SessionSecrets, SessionWarning } from "./provider/session/session-options.ts";
export { type StartRequest, startSession } from "./provider/session/start-session.ts";
export { createFileSessionStateStore } from "./provider/state/file-session-state-store.ts";
export type { SessionRecord, SessionStatus, StoredProfile } from "./provider/state/session-record.ts";
export type { ListSessionsOptions, SessionStateStore } from "./provider/state/session-state-store.ts";
export { BUILT_IN_EXCLUDES, createExcludes, type Excludes } from "./provider/sync/excludes.ts";
export { packTree, type PackOptions } from "./provider/sync/pack-tree.ts";
export {
  createSyncCounter,
  DEFAULT_SYNC_LIMITS,
  type SyncLimits,
  type SyncCounter,
} from "./provider/sync/sync-counter.ts";
export { unpackTree, type UnpackOptions } from "./provider/sync/unpack-tree.ts";
export type { SandboxDefaults, SandboxSource } from "./provider/turnbox/sandbox-source.ts";
export {
  createTurnboxProvider,
  type TurnboxProvider,
  type TurnboxProviderOptions,
} from "./provider/turnbox/turnbox-provider.ts";
