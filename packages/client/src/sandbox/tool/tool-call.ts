import type { CallOptions } from "../call.ts";

/** How a tool is called. */
export interface ToolOptions extends CallOptions {
  /** The same id is the same call: it joins the one in flight or has its stored result. Made by the client unless given. */
  readonly toolCallId?: string;
  /** Refuses with GENERATION_CHANGED where the sandbox is another by now. */
  readonly expectedGeneration?: number;
  readonly stdin?: string | Uint8Array;
  readonly limits?: CallLimits;
  /** `continue`, the default, lets the tool run on when the client vanishes; its result is kept under its id. */
  readonly onDisconnect?: "continue" | "kill";
  /** What happens to output that the reader of a stream is too slow for; `wait` unless given. */
  readonly slowReader?: "wait" | "drop";
}

/** Bounds of one call, on top of the sandbox's own. */
export interface CallLimits {
  readonly timeoutMs?: number;
  readonly memoryBytes?: number;
  readonly outputBytes?: number;
}

/** How a command is run. */
export interface BashOptions extends ToolOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** How what a tool ran has ended. */
export type ExitReason = "exited" | "timed_out" | "killed" | "oom" | "sandbox_lost";

/** A part of a result. */
export type ContentBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly data: Uint8Array; readonly mediaType: string };

/** What a tool answered. */
export interface ToolResult {
  readonly toolCallId: string;
  /** The result as text, for a model. */
  readonly content: string;
  readonly blocks: readonly ContentBlock[];
  /** The tool could not do it; `content` says why. */
  readonly isError: boolean;
  readonly exitCode: number | undefined;
  readonly exitReason: ExitReason | undefined;
  readonly snapshotId: string | undefined;
  readonly durationMs: number;
  readonly tier: number;
  readonly generation: number;
  /** The answer to an earlier call with this id. */
  readonly replayed: boolean;
}

/** What a command came to. */
export interface BashResult extends ToolResult {
  /** Of each stream at most `limits.outputBytes`, 1 MiB unless given; what came after is counted below. */
  readonly stdout: string;
  readonly stderr: string;
  readonly stdoutDroppedBytes: number;
  readonly stderrDroppedBytes: number;
  /** 124 after a timeout, 128 + signal after a kill, as a shell has it. */
  readonly exitCode: number;
  /** Exit code 0. */
  readonly ok: boolean;
}

/** A piece of output, as it came. */
export interface OutputChunk {
  readonly stream: "stdout" | "stderr";
  readonly data: Uint8Array;
  /** Of the first byte, in its stream. */
  readonly offset: number;
  /** Bytes just before these that were dropped. */
  readonly droppedBytes: number;
}

/**
 * A call whose output is read as it comes. The call begins at once. A dropped connection, and a restart of the host's
 * service, are got over: the iterable goes on at its offset, or fails with the reason why it cannot. Leaving the loop
 * early kills the call, unless `detach()` was called. A stream that is not read makes the tool wait, unless its caller said
 * `slowReader: "drop"`.
 */
export interface ToolStream<T extends ToolResult> extends AsyncIterable<OutputChunk> {
  readonly toolCallId: string;
  /** The result; output that is not iterated over is thrown away. */
  result(): Promise<T>;
  /** Lets the call go on when the loop is left; its output is thrown away from then on. */
  detach(): void;
  /** Kills the call, which ends the stream with a result that says so. */
  cancel(options?: CallOptions): Promise<void>;
}
