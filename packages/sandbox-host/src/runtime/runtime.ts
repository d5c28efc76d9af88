import type { Readable, Writable } from "node:stream";

export interface RuntimeCall {
  readonly signal: AbortSignal;
}

/** Bounds of a whole container. Absent means the runtime's own default. */
export interface ContainerLimits {
  /** In cores; 0.5 is half of one. */
  readonly cpus?: number;
  readonly memoryBytes?: number;
  readonly pids?: number;
}

/** A resident container: it stays up and runs nothing by itself; work is brought by `exec`. */
export interface ContainerSpec {
  /** Opaque, of one fixed length for all containers, lower-case letters and digits. */
  readonly id: string;
  /** The directory that becomes `/`. The sandbox writes to it directly; host and sandbox see the same bytes at once. */
  readonly rootPath: string;
  readonly hostname: string;
  readonly limits: ContainerLimits;
}

export interface ExecSpec {
  /** A program that is named without a slash is looked up inside, in the PATH of `env`. */
  readonly argv: readonly [string, ...string[]];
  /** The whole environment of the process. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute path inside. */
  readonly cwd: string;
  /**
   * How long the process may run; at its deadline, it and everything it started is ended. What a process that exited in
   * time has left in the background lives on.
   */
  readonly deadlineMs: number;
}

/** How an execution ended. Every kind but `exited` means that the whole tree it started is gone. */
export type ExecExit =
  | { readonly kind: "exited"; readonly exitCode: number }
  | { readonly kind: "signaled"; readonly signal: number }
  | { readonly kind: "timed_out" }
  | { readonly kind: "killed" }
  | { readonly kind: "oom" }
  | { readonly kind: "sandbox_lost" };

/**
 * A running process. Its owner reads both outputs: a reader that stops reading slows the process down. The outputs end
 * before `exit` settles, unless their reader stalls beyond the deadline; `exit` never rejects.
 *
 * The outputs end with the process. What it has left in the background may go on writing to them, and is not heard.
 */
export interface Execution {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly exit: Promise<ExecExit>;
  /** Ends the process and everything it started, also what left its process group, and settles when that is verified. */
  kill(): Promise<void>;
}

/** `running` means that it answered just now; a file that says so is not enough. */
export type Liveness = "running" | "paused" | "gone";

/** What a container uses. */
export interface ContainerStats {
  /** Processor time since its boot; where there is no isolation, of what lives in it now. */
  readonly cpuMs: number;
  readonly memoryBytes: number;
  /** As `processes` counts them. */
  readonly processes: number;
}

/**
 * What runs the code of sessions.
 *
 * The service is not the parent that containers die with: they outlive a `kill -9` of it and are found again by `list`.
 * Failures are `SandboxError`s: `RUNTIME_UNAVAILABLE`, `SANDBOX_LOST`, `INVALID_ARGUMENT` (no such program or directory).
 */
export interface Runtime {
  readonly kind: "gvisor" | "none" | "fake";
  readonly isolation: "sandboxed" | "none";
  /** Whether processes stay as they are over pause and resume. */
  readonly pausePreservesProcesses: "yes" | "no";

  /**
   * Proves by a real run that the runtime works; `RUNTIME_UNAVAILABLE` says why where it does not. Takes away what an
   * earlier service has left unfinished: containers whose boot was cut off, and probes. Idempotent.
   */
  open(call: RuntimeCall): Promise<{ readonly version: string }>;
  /** Boots a container; answers when it can run something. One that runs already is left as it is. */
  start(spec: ContainerSpec, call: RuntimeCall): Promise<void>;
  /**
   * Starts a process in a running container. The signal cancels the start only; use `kill` afterwards.
   *
   * A start that was given up, cancelled or not answered in time, is undone: everything it may have started is ended. But
   * it may have run for a while, so such an error says `admitted: "unknown"`; with any other, nothing has run.
   */
  exec(id: string, spec: ExecSpec, call: RuntimeCall): Promise<Execution>;
  /**
   * Ends what an earlier service started by `exec` in this container and nobody waits for any more, and so nobody ends at
   * its deadline: each execution of another instance whose process still runs, with everything it started. What a
   * process that had exited left in the background lives on, and so do this instance's executions. Where a tree cannot be
   * ended alone, the container is stopped. A container that is gone is quiet; a paused one stays paused. Idempotent.
   */
  quiesce(id: string, call: RuntimeCall): Promise<void>;
  liveness(id: string, call: RuntimeCall): Promise<Liveness>;
  /**
   * How many processes there are inside, those of executions included and the runtime's own left out. A paused container
   * is counted as it stands; one that does not run is `SANDBOX_LOST`.
   */
  processes(id: string, call: RuntimeCall): Promise<number>;
  /** What the container uses at this moment, also while it is paused. One that does not run is `SANDBOX_LOST`. */
  stats(id: string, call: RuntimeCall): Promise<ContainerStats>;
  /** Freezes every process of the container. Idempotent. */
  pause(id: string, call: RuntimeCall): Promise<void>;
  /** Thaws them. Idempotent. */
  resume(id: string, call: RuntimeCall): Promise<void>;
  /**
   * Ends the container and verifies that no process, mount, cgroup or state of it is left. Idempotent. Takes seconds at
   * most: what cannot be ended within 15 s, such as a process that waits for a hung filesystem, is `RUNTIME_UNAVAILABLE`,
   * and the same call again goes on.
   */
  stop(id: string, call: RuntimeCall): Promise<void>;
  /** Ids of all containers of this runtime's own state directory, dead ones included. */
  list(call: RuntimeCall): Promise<readonly string[]>;
}
