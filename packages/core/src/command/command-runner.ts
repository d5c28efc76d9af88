import type { Readable, Writable } from "node:stream";

/** A program to run. There is no shell: each argument reaches the program as it is. */
export interface CommandSpec {
  /** A name looked up in PATH, or an absolute path. */
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment of the child besides PATH; nothing of the service's own is passed on. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /**
   * How long the child may live, and its streams stay open, before it and its process group are killed. More than 24 days
   * count as 24 days.
   */
  readonly deadlineMs: number;
  /**
   * What its streams are. `sockets` (default) are quick to make; `fifos` are for programs that may open their outputs again
   * by name (`/dev/stdout`), which no socket allows. The system blocks whoever opens an input fifo again after its end.
   */
  readonly stdio?: "sockets" | "fifos";
}

/** A program to run to its end, with its output collected. */
export interface RunSpec extends CommandSpec {
  readonly stdin?: string | Uint8Array;
  /**
   * Where given, both outputs are appended to this file and stdin is empty: for programs that leave a daemon behind, which
   * would hold a pipe open for ever. The result then has no output, and ends with the program, not with its descendants.
   */
  readonly outputPath?: string;
  /** How much of each stream is kept; what comes after it is counted and dropped. Default 1 MiB. */
  readonly maxOutputBytes?: number;
}

export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Bytes that did not fit into `stdout` and `stderr`. */
  readonly droppedBytes: number;
}

/** How a started program ended: by itself, or by a signal (its own or the deadline's). */
export type CommandExit =
  | { readonly kind: "exited"; readonly exitCode: number }
  | { readonly kind: "signaled"; readonly signal: NodeJS.Signals; readonly deadline: "passed" | "kept" };

/** A program that runs. Its owner reads both outputs and, when done with it, kills or awaits it. */
export interface RunningCommand {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Settles when the child itself has ended; descendants of it may still hold its streams open. */
  readonly ended: Promise<CommandExit>;
  /** Settles when the child has ended and its streams are closed, by its deadline at the latest. */
  readonly exit: Promise<CommandExit>;
  /** Signals the child's whole process group; an ended one is left alone. */
  kill(signal?: NodeJS.Signals): void;
}

/**
 * The only door to other programs. Each child is the leader of its own process group, has a deadline and bounded output.
 *
 * `run` answers with any exit code, soon after the program itself has ended: output that descendants write later is not
 * waited for. It throws `COMMAND_MISSING` where there is no such program, `INVALID_ARGUMENT` where no program could be
 * given these arguments, and `COMMAND_OUTCOME_UNKNOWN` where the child was ended by a signal, by its deadline or by the
 * caller's signal: whoever asked must look at the state of things before trying again.
 */
export interface CommandRunner {
  run(spec: RunSpec, options?: { readonly signal?: AbortSignal }): Promise<CommandResult>;
  /** Starts without waiting. The caller's signal kills the group. Throws `COMMAND_MISSING` like `run`. */
  start(spec: CommandSpec, options?: { readonly signal?: AbortSignal }): Promise<RunningCommand>;
}
