import type { CallOptions, OutputChunk, SandboxState, ToolResult } from "@turnbox/client";

/** The states of a session, and `destroyed`, which only the client knows: the provider has nothing left to ask about. */
export type EnvironmentState = SandboxState | "destroyed";

/** What an environment can do. What it cannot do fails with CAPABILITY_NOT_SUPPORTED. */
export interface EnvironmentCapabilities {
  /** `createSnapshot`. */
  readonly snapshots: boolean;
  readonly rollback: boolean;
  /** `pause` and `resume`. */
  readonly pause: boolean;
  /** `create` and `destroy`; not if the environment is attached to a session of another owner. */
  readonly lifecycle: boolean;
  /** Output is reported while the tool runs, not only at its end. */
  readonly streamingProgress: boolean;
  /** File tools and code run in different places. */
  readonly tierRouting: boolean;
  /** What stands between the tools and the machine. `none`: they can do all that this process can. */
  readonly isolation: "gvisor" | "provider" | "none";
  /** Longest life of a session; undefined if there is no limit. */
  readonly maxDurationMs: number | undefined;
}

/** The session to make. */
export interface EnvironmentConfig {
  /** Chosen by the caller: a letter or digit, then letters, digits, dot, underscore or hyphen, at most 128. */
  readonly sessionId: string;
  /** What its files begin as; the environment's default unless given. */
  readonly baseImage?: string;
  /** Shown in lists of sessions; without effect if there are none. */
  readonly labels?: Readonly<Record<string, string>>;
  /** What only this kind of environment knows. An option that it does not know is refused. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** A tool to run. */
export interface ToolRequest {
  readonly toolName: string;
  /** Names the call; unique in the session. */
  readonly toolCallId: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** How long the tool may run; the tool's default unless given. */
  readonly timeoutMs?: number;
}

/** Output of a tool, as it comes. */
export type ToolProgress = OutputChunk;
/** What became of it. */
export type ToolResponse = ToolResult;

/** A snapshot that an environment has taken. */
export interface SnapshotInfo {
  readonly id: string;
  readonly name: string;
  readonly createdAt: Date;
}

/** What every operation of an environment takes. */
export type EnvironmentCall = Pick<CallOptions, "signal">;

/**
 * A place in which an agent's tools run: one session, from `create` to `destroy`. Safe for calls at the same time,
 * lifecycle and tools alike: lifecycle calls take their turn one after the other, and `destroy` ends what is under way.
 *
 * Failures are `SandboxError`s. Those that every environment has in common:
 * CAPABILITY_NOT_SUPPORTED (not in `capabilities()`), SESSION_NOT_FOUND (the provider has lost it), SESSION_NOT_ACTIVE (not
 * created yet, paused or ended), PROVIDER_UNAVAILABLE (no answer), SESSION_LIMIT_REACHED (no room).
 */
export interface ExecutionEnvironment {
  /** Makes the session. A failure leaves nothing behind, and `create` may be called again. */
  create(config: EnvironmentConfig, options?: EnvironmentCall): Promise<void>;
  /** Runs no tools from now on, and waits for those that run. Without effect if it is paused. */
  pause(options?: EnvironmentCall): Promise<void>;
  /** Without effect if it is active. */
  resume(options?: EnvironmentCall): Promise<void>;
  /** Ends the session in any state; without effect if it has ended. The signal ends the waiting, not the removal. */
  destroy(options?: EnvironmentCall): Promise<void>;
  /**
   * Runs a tool. A tool that fails, or a command that exits with another code than 0, is a response. `onProgress` is
   * called in the order of the output and never after the answer; what it throws ends the call.
   */
  executeTool(
    request: ToolRequest,
    onProgress?: (progress: ToolProgress) => void,
    options?: EnvironmentCall,
  ): Promise<ToolResponse>;
  /** Never fails: `creating` before `create`, `failed` if there is no answer, `destroyed` after `destroy`. */
  state(options?: EnvironmentCall): Promise<EnvironmentState>;
  /** What is expected before `create`, what was found after it. */
  capabilities(): EnvironmentCapabilities;
  createSnapshot(name: string, options?: EnvironmentCall): Promise<SnapshotInfo>;
  rollback(snapshotId: string, options?: EnvironmentCall): Promise<void>;
}
