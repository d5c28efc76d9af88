import type { CallOptions, Secret } from "@turnbox/client";

/** The program to start in a sandbox. */
export interface LaunchSpec {
  /** A path, or a name looked up in PATH. */
  readonly command: string;
  readonly args?: readonly string[];
  /** All that it is given beyond the launcher's own minimum. Values are never logged. */
  readonly env?: Readonly<Record<string, string>>;
  /** Wins over `env`; revealed only where the process is made. */
  readonly secretEnv?: Readonly<Record<string, Secret>>;
  /** Absolute; the root of the sandbox unless given. */
  readonly cwd?: string;
}

/** How a program ended. */
export interface LaunchExit {
  /** Absent if a signal, or the end of the sandbox, ended it. */
  readonly exitCode: number | undefined;
  /** The signal's name, `SIGKILL` for one. */
  readonly signal: string | undefined;
  /** Why it ended if neither says so: `sandbox_lost`, `oom`, `stopped`. */
  readonly reason: string | undefined;
}

/** A running program that is talked to over its standard input and output. */
export interface Handle extends AsyncDisposable {
  /** Of the local process; 0 where the program runs in a sandbox of its own. */
  readonly pid: number;
  /** What the program is called where it runs. */
  readonly id: string;
  readonly cwd: string;
  /** Closing it closes the program's input. */
  readonly stdin: WritableStream<Uint8Array>;
  /** Standard output alone. Errors with a `SandboxError` if bytes were lost; cancelling it stops the reading only. */
  readonly stdout: ReadableStream<Uint8Array>;
  /** The last of what it wrote to standard error, `STDERR_TAIL_BYTES` at most. */
  stderr(options?: CallOptions): Promise<string>;
  /** Resolves when it has ended; never rejects. */
  readonly done: Promise<void>;
  /** Waits until it has ended. Rejects if the end cannot be known, and with the signal's reason. */
  wait(options?: CallOptions): Promise<LaunchExit>;
  /** SIGTERM, and SIGKILL to all that it started if it is not gone after `STOP_GRACE_MS`. Idempotent. */
  stop(options?: CallOptions): Promise<void>;
}

/** Starts programs in one place: this machine, or a sandbox. Whoever launches stops: disposing the handle does. */
export interface Launcher {
  launch(spec: LaunchSpec, options?: CallOptions): Promise<Handle>;
}

export const STDERR_TAIL_BYTES = 64 * 1024;
export const STOP_GRACE_MS = 5000;
