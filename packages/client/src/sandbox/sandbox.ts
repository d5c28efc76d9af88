import type { SandboxError } from "@turnbox/core";
import type { CallOptions, KeyedOptions } from "./call.ts";
import type { SandboxFiles } from "./files/sandbox-files.ts";
import type { SandboxNetwork } from "./network/sandbox-network.ts";
import type { SandboxProcesses } from "./process/sandbox-processes.ts";
import type { SandboxTerminal, TerminalOptions } from "./process/sandbox-terminal.ts";
import type { RepairedSandbox, SandboxAccess, SandboxInfo, SandboxStats } from "./sandbox-info.ts";
import type { ToolDefinitions } from "./tool/tool-definitions.ts";
import type { BashOptions, BashResult, ToolOptions, ToolResult, ToolStream } from "./tool/tool-call.ts";
import type { DiffOptions, FileChange, ForkOptions, RollbackOptions, Rollback } from "./turn/turn-types.ts";
import type { Snapshot, SnapshotFilter, Turn, TurnOptions } from "./turn/snapshot.ts";

/**
 * A sandbox, as an agent loop holds it. Calls go straight to the sandbox's host, and get over dropped connections, hosts
 * that restart and tokens that run out, as far as the error table allows: a call whose effect is unknown is made again
 * only under its key. Every failure is a `SandboxError`.
 *
 * Disposing closes the connection. `await using` of a sandbox that `create`, `fork` or `restore` made also destroys it, unless
 * `keep()` was called; one that `get` or `getOrCreate` found is left alone.
 */
export interface Sandbox extends AsyncDisposable {
  /** `fleet:<instance>:<session>`. */
  readonly id: string;
  readonly sessionId: string;
  readonly name: string | undefined;
  /** What the server said about it when this handle was made; undefined if it said nothing. `info()` asks again. */
  readonly known: SandboxInfo | undefined;

  info(options?: CallOptions): Promise<SandboxInfo>;
  stats(options?: CallOptions): Promise<SandboxStats>;
  /** Where the host is and a token for this sandbox, to talk to it without this library. */
  access(options?: AccessOptions): Promise<SandboxAccess>;

  /** Runs a command with `bash -c` in /workspace. A command that exits with another code than 0 is a result. */
  bash(command: string, options?: BashOptions): Promise<BashResult>;
  /** The same, with the output as it comes. */
  bashStream(command: string, options?: BashOptions): ToolStream<BashResult>;
  /** Runs a tool of the catalog. */
  tool(name: string, params: Readonly<Record<string, unknown>>, options?: ToolOptions): Promise<ToolResult>;
  toolStream(name: string, params: Readonly<Record<string, unknown>>, options?: ToolOptions): ToolStream<ToolResult>;
  /** The catalog, ready to hand to a model. */
  tools(options?: CallOptions): Promise<ToolDefinitions>;

  readonly files: SandboxFiles;
  readonly processes: SandboxProcesses;
  readonly network: SandboxNetwork;
  /** Starts a shell in a terminal. */
  shell(options?: TerminalOptions): Promise<SandboxTerminal>;
  /** An address that reaches the port inside, with the token that opens it. */
  url(port: number, options?: PortOptions): Promise<PortAccess>;

  /** Seals the turn: a snapshot with a number that is never used twice. Failed turns are sealed too. */
  turn(options?: TurnOptions): Promise<Turn>;
  /** The sealed turns, oldest first. */
  turns(options?: CallOptions): Promise<readonly Snapshot[]>;
  /** Takes a snapshot that is no turn. */
  snapshot(name: string, options?: KeyedOptions): Promise<Snapshot>;
  snapshots(filter?: SnapshotFilter): Promise<readonly Snapshot[]>;
  deleteSnapshot(snapshotId: string, options?: KeyedOptions): Promise<void>;
  /** Goes back to a turn, by its number, or to a snapshot, by its id. Nothing is lost: `undo()` comes back. */
  rollback(target: number | string | Pick<Snapshot, "id">, options?: RollbackOptions): Promise<Rollback>;
  /** Takes the last rollback back. */
  undo(options?: RollbackOptions): Promise<Rollback>;
  /** New sandboxes with the files of this one, of now or of a snapshot. The result has one entry for each child. */
  fork(options?: ForkOptions): Promise<readonly Fork[]>;
  /** A new sandbox from a snapshot, with this one's config, ports and TTL policy. */
  restore(snapshotId: string, options?: KeyedOptions): Promise<Sandbox>;
  /** What changed, from a turn or snapshot to another, or to now. */
  diff(options: DiffOptions): Promise<readonly FileChange[]>;

  pause(options?: PauseOptions): Promise<SandboxInfo>;
  resume(options?: KeyedOptions): Promise<SandboxInfo>;
  /** Sets the time to live, counted from now on; `none` removes the end. */
  extend(ttlMs: number | "none", options?: KeyedOptions): Promise<SandboxInfo>;
  /** Leaves `failed` and quarantine, if the files allow it. */
  repair(options?: KeyedOptions): Promise<RepairedSandbox>;
  destroy(options?: KeyedOptions): Promise<void>;
  /** Disposing will not destroy it. Returns itself. */
  keep(): Sandbox;
}

/** One child, or why there is none. */
export type Fork =
  | { readonly sandbox: Sandbox; readonly error?: undefined }
  | { readonly sandbox?: undefined; readonly error: SandboxError };

/** Which token is wanted. */
export interface AccessOptions extends CallOptions {
  /** At most 24 hours; one hour unless given. */
  readonly ttlMs?: number;
}

/** How a sandbox is paused. */
export interface PauseOptions extends KeyedOptions {
  /** What happens to running tools; `wait` unless given. */
  readonly tools?: "wait" | "refuse" | "kill";
}

/** How long a port can be reached. */
export interface PortOptions extends KeyedOptions {
  readonly ttlMs?: number;
}

/** How to reach a port inside. It ends with the generation: a rollback closes it. */
export interface PortAccess {
  readonly url: string;
  /** Sent as a bearer token or as the header `turnbox-port-token`; not needed if the policy allows public ingress. */
  readonly token: string;
  readonly expiresAt: Date | undefined;
}
