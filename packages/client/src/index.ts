export {
  type Admitted,
  type Clock,
  hasReason,
  type Reason,
  type ReasonRow,
  type Retry,
  SandboxError,
  type SandboxErrorOptions,
  Secret,
} from "@turnbox/core";
export { type ConnectOptions, connectHost, connectTurnbox, type HostClients, type TurnboxClients } from "./client.ts";
export type { Connection, ConnectionFactory, Endpoint } from "./connection.ts";
export type {
  DrainOptions,
  DrainReason,
  Fleet,
  FleetEvent,
  FleetStatus,
  HostReport,
  HostStats,
  Instance,
  InstanceState,
  Refresh,
  RefreshOptions,
} from "./fleet/fleet-types.ts";
export {
  type HostSession,
  type HostSessionOptions,
  type OpenHostSession,
  openHostSession,
} from "./host/host-session.ts";
export type { CallOptions, KeyedOptions } from "./sandbox/call.ts";
export type {
  FileContent,
  FileEvent,
  FileInfo,
  FileKind,
  ReadOptions,
  SandboxFiles,
  WriteOptions,
} from "./sandbox/files/sandbox-files.ts";
export { DEFAULT_TIMEOUT_MS } from "./sandbox/link/default-timeouts.ts";
export { PATIENCE_MS } from "./sandbox/link/patience.ts";
export type {
  NetworkDenial,
  NetworkReport,
  SandboxNetwork,
  SandboxNetworkPolicy,
} from "./sandbox/network/sandbox-network.ts";
export type {
  LaunchOptions,
  OutputOptions,
  ProcessExitReason,
  ProcessInfo,
  ProcessOutput,
  ProcessState,
  SandboxProcess,
  SandboxProcesses,
  Signal,
  TerminalSize,
} from "./sandbox/process/sandbox-processes.ts";
export type { SandboxTerminal, TerminalOptions } from "./sandbox/process/sandbox-terminal.ts";
export type {
  RepairedSandbox,
  SandboxAccess,
  SandboxCapabilities,
  SandboxInfo,
  SandboxState,
  SandboxStats,
} from "./sandbox/sandbox-info.ts";
export type { AccessOptions, Fork, PauseOptions, PortAccess, PortOptions, Sandbox } from "./sandbox/sandbox.ts";
export type {
  BashOptions,
  BashResult,
  CallLimits,
  ContentBlock,
  ExitReason,
  OutputChunk,
  ToolOptions,
  ToolResult,
  ToolStream,
} from "./sandbox/tool/tool-call.ts";
export type {
  AnthropicTool,
  JsonSchema,
  McpTool,
  OpenAiTool,
  ToolDefinitions,
  ToolDescription,
} from "./sandbox/tool/tool-definitions.ts";
export type { Snapshot, SnapshotFilter, SnapshotKind, Turn, TurnOptions } from "./sandbox/turn/snapshot.ts";
export type {
  DiffOptions,
  FileChange,
  ForkOptions,
  Rollback,
  RollbackOptions,
} from "./sandbox/turn/turn-types.ts";
export { Turnbox } from "./turnbox/turnbox.ts";
export type {
  CreateOptions,
  DestroyAndWaitOptions,
  ImportedTemplate,
  ListOptions,
  Residue,
  SandboxList,
  Template,
  TurnboxOptions,
} from "./turnbox/turnbox-types.ts";
