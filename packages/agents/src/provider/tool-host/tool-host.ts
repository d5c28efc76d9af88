import type { CallOptions } from "@turnbox/client";
import type { PermissionMode, PermissionOperation, PermissionRequest, PermissionVerdict } from "./permission.ts";

/** Which lines of a file; all unless given. */
export interface TextRange {
  /** The first line, counted from 1. */
  readonly line?: number;
  /** At most so many lines. */
  readonly limit?: number;
}

/** A command to run in a terminal. */
export interface TerminalSpec {
  /** A path, or a name looked up in PATH. Not a shell's line: `sh` with `-c` runs one. */
  readonly command: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The root unless given. Has to be inside the roots. */
  readonly cwd?: string;
  /** How many of the last bytes of output are kept; `TERMINAL_OUTPUT_BYTES` unless given. */
  readonly outputByteLimit?: number;
}

/** How the command of a terminal ended. */
export interface TerminalExit {
  readonly exitCode: number | undefined;
  /** The signal's name, `SIGKILL` for one. */
  readonly signal: string | undefined;
}

/** The last bytes that a terminal has shown. */
export interface TerminalOutput {
  /** The last of what it wrote to both streams, cut between characters. */
  readonly output: string;
  /** Older output was dropped. */
  readonly truncated: boolean;
  /** Once it has ended. */
  readonly exit: TerminalExit | undefined;
}

/**
 * What an agent that runs beside a sandbox, or inside it, has done for it there: text files, terminals and the decision
 * on what it may do. `authorize` and `permissionDecision` say what the mode allows; what serves an agent calls them
 * first, the other operations do what they are asked, inside the roots. Disposing releases every terminal.
 */
export interface ToolHost extends AsyncDisposable {
  /** Absolute; relative paths begin here. */
  readonly root: string;
  readonly additionalDirs: readonly string[];
  readonly permissions: PermissionMode;

  readTextFile(path: string, options?: TextRange & CallOptions): Promise<string>;
  /** Makes missing directories. */
  writeTextFile(path: string, content: string, options?: CallOptions): Promise<void>;
  /** The absolute path with symlinks followed; what need not exist yet. PATH_REFUSED where it is outside the roots. */
  resolvePath(path: string, options?: CallOptions): Promise<string>;

  /** PERMISSION_DENIED where the mode does not allow the operation by itself. */
  authorize(operation: PermissionOperation): void;
  /** What the mode says to an agent that asks. */
  permissionDecision(request: PermissionRequest, options?: CallOptions): Promise<PermissionVerdict>;

  /** Starts a command without waiting for it; returns the terminal's id. */
  createTerminal(spec: TerminalSpec, options?: CallOptions): Promise<string>;
  /** Ends the command and all it started; the terminal and its output stay. */
  killTerminal(id: string, options?: CallOptions): Promise<void>;
  terminalOutput(id: string, options?: CallOptions): Promise<TerminalOutput>;
  waitForTerminalExit(id: string, options?: CallOptions): Promise<TerminalExit>;
  /** Kills the command if it still runs, and forgets the terminal. */
  releaseTerminal(id: string, options?: CallOptions): Promise<void>;
}

export const TERMINAL_OUTPUT_BYTES = 1024 * 1024;
