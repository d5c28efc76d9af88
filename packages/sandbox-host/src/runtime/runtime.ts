import type { Readable, Writable } from "node:stream";

/*
 * The runtime port: containers, and what runs in them.
 *
 * Words. A **container** is resident: it boots on a directory of the host, its root, stays up and runs nothing by itself. Its **id**
 * is chosen by the caller, who makes it durable before `start`, so that no container is ever without an owner. An **execution** is a
 * process that a caller of this service waits for: it has a deadline and ends with the service. A **spawned process** is one that
 * outlives the service; it is found again by its directory. A **terminal** is an execution whose streams are a terminal. The **tree**
 * of a process is everything that it started, also what left its process group.
 *
 * Life. `open` proves that the runtime works and removes what an earlier service left half-made. A container then goes
 *
 *     start -> running <-> paused -> stop
 *                 |           |
 *                 +--- gone --+     its sandbox died: `SANDBOX_LOST`; `stop` removes what is left
 *
 * The service is not the parent that containers die with: they outlive a `kill -9` of it, and the next service finds them by `list`,
 * asks `liveness`, ends by `quiesce` what the old one waited for, and goes on. `close` ends what is held ready and no container.
 *
 * What a call promises. A `start`, `exec` or `spawn` that returns has happened. One that fails has run nothing, unless its error says
 * `admitted: "unknown"`. `pause`, `resume`, `stop`, `quiesce` and `endInput` are idempotent: after an error they are called again.
 * Failures are `SandboxError`s: `RUNTIME_UNAVAILABLE`, `SANDBOX_LOST`, `INVALID_STATE` (it is paused), `INVALID_ARGUMENT` (no such
 * program or directory).
 *
 * An example: one command in a container of its own.
 *
 *     await runtime.open(call);
 *     await runtime.start({ id, rootPath, hostname: "box", limits: { pids: 100 } }, call);
 *     const spec = { argv: ["sh", "-c", "make"], env: { PATH }, cwd: "/workspace", deadlineMs: 60_000 } as const;
 *     const execution = await runtime.exec(id, spec, call);
 *     execution.stdin.end();
 *     execution.stderr.resume(); // its owner reads both outputs
 *     const [output, exit] = await Promise.all([text(execution.stdout), execution.exit]);
 *     if (exit.kind === "timed_out") report("make and all that it started are gone");
 *     await runtime.pause(id, call); // its files can be snapshotted now: nothing writes
 *     await runtime.resume(id, call);
 *     await runtime.stop(id, call); // no process, mount, cgroup or state of it is left
 *
 * Every adapter passes `runtime.suite.ts`. What serves speed alone is a second, optional interface: `Prewarm`.
 */

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
  /** Absent means no network but loopback. */
  readonly network?: ContainerNetwork;
}

/** A network that was made for a container. */
export interface ContainerNetwork {
  readonly netnsPath: string;
  /** What the sandbox asks for names; it shows as `/etc/resolv.conf`. */
  readonly nameserver: string;
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
 * The outputs end with the process. What it has left in the background may go on writing to them, and is not read.
 */
export interface Execution {
  /** Destroyed when the execution has ended. */
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly exit: Promise<ExecExit>;
  /** Ends the process and everything it started, also what left its process group, and settles when that is verified. */
  kill(): Promise<void>;
}

/** A process that outlives the service, and is found again by its directory. */
export interface SpawnSpec extends Pick<ExecSpec, "argv" | "env" | "cwd"> {
  /** Opaque, 26 lower-case letters and digits, never used twice. */
  readonly name: string;
  /**
   * A directory of the host that belongs to this process alone and exists. The runtime keeps in it how the process ended,
   * and a FIFO `input` whose bytes are the process's standard input. The input does not end by itself: see `endInput`.
   */
  readonly directory: string;
  /**
   * A file of the host that both outputs are appended to. It may be cut to nothing while the process is stopped. One that
   * grows without end because no service looks after it has the container paused, if the runtime can do that.
   */
  readonly outputPath: string;
}

/** What a spawned process is found by. */
export type SpawnedProcess = Pick<SpawnSpec, "name" | "directory">;

/** How a spawned process is. `unknown`: it has ended, and it is not known how. */
export type ProcessLife =
  | { readonly kind: "running" }
  | { readonly kind: "exited"; readonly exitCode: number }
  | { readonly kind: "signaled"; readonly signal: number }
  | { readonly kind: "oom" }
  | { readonly kind: "sandbox_lost" }
  | { readonly kind: "unknown" };

export interface SignalSpec {
  /** 1 to 64. */
  readonly signal: number;
  /** `tree`: the process and everything it started; SIGKILL then settles when all of it is gone. */
  readonly scope: "process" | "tree";
}

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** `terminal_lost`: what held the terminal has ended or failed; the process and everything it started is gone. */
export type TerminalExit = ExecExit | { readonly kind: "terminal_lost" };

/**
 * A process on a terminal. It ends with the service. What holds the terminal is no part of the service: its failure is the end of
 * this terminal and of nothing else.
 */
export interface TerminalExecution {
  /** What the terminal shows, as it comes; called from the first byte on. */
  onOutput(listener: (data: Buffer) => void): void;
  /** Stops and goes on with reading; a terminal that is not read stops its process. */
  hold(): void;
  release(): void;
  /**
   * Types some of the data, as much as the terminal takes within the time, and returns how many bytes that was: 0 if it is
   * full because its program does not read, or has ended. Nothing else of the data is kept. Calls take their turn.
   */
  write(data: Uint8Array, patienceMs: number): Promise<number>;
  /** Sends a signal to what is in the foreground, as a key does; for a terminal that is too full for the key. */
  signal(signal: number): void;
  resize(size: TerminalSize): void;
  /** Never rejects, and settles after the last output. */
  readonly exit: Promise<TerminalExit>;
  /** Ends the process with everything it started. */
  kill(): Promise<void>;
}

/** `running` means that it has just answered; a file that says so is not enough. */
export type Liveness = "running" | "paused" | "gone";

/** What a container uses. */
export interface ContainerStats {
  /** Processor time since its boot; without isolation, of what lives in it now. */
  readonly cpuMs: number;
  readonly memoryBytes: number;
  /** As `processes` counts them. */
  readonly processes: number;
}

/** What runs the code of sessions. The page at the head of this file teaches it. */
export interface Runtime {
  /** What serves speed alone; absent when a runtime has nothing to get ready. */
  readonly prewarm?: Prewarm;
  readonly kind: "gvisor" | "none" | "fake";
  readonly isolation: "sandboxed" | "none";
  /** Whether processes stay as they are over pause and resume. */
  readonly pausePreservesProcesses: "yes" | "no";

  /**
   * Proves by a real run that the runtime works; `RUNTIME_UNAVAILABLE` says why if it does not. Takes away what an
   * earlier service has left unfinished: containers whose boot was cut off, and probes. Idempotent.
   */
  open(call: RuntimeCall): Promise<{ readonly version: string }>;
  /** Boots a container; settles when it can run something. One that runs already is left as it is. */
  start(spec: ContainerSpec, call: RuntimeCall): Promise<void>;
  /** Gives a running container other bounds than it was started with. What is absent is the runtime's own default. */
  limit(id: string, limits: ContainerLimits, call: RuntimeCall): Promise<void>;
  /**
   * Starts a process in a running container. The signal cancels the start only; use `kill` afterwards.
   *
   * A start that was given up, cancelled or not answered in time, is undone: everything it may have started is ended. But
   * it may have run for a while, so such an error says `admitted: "unknown"`; with any other, nothing has run.
   */
  exec(id: string, spec: ExecSpec, call: RuntimeCall): Promise<Execution>;
  /**
   * Starts a process that outlives the service, and returns when it runs. As with `exec`, a start that was given up is
   * undone, and what fails otherwise has run nothing.
   */
  spawn(id: string, spec: SpawnSpec, call: RuntimeCall): Promise<{ readonly pid: number }>;
  /**
   * Takes over the output of a process that an earlier service spawned. A runtime may pause the container of one whose output
   * grows and grows while no service looks after it; from now on it does not.
   */
  tend(process: SpawnedProcess, call: RuntimeCall): Promise<void>;
  /** How a spawned process is, asked by this or a later service. Cheap while it runs. */
  inspect(id: string, process: SpawnedProcess, call: RuntimeCall): Promise<ProcessLife>;
  /** Sends a signal to a spawned process. One that has ended is left alone. */
  signal(id: string, process: SpawnedProcess, spec: SignalSpec, call: RuntimeCall): Promise<void>;
  /** Ends a spawned process's input, behind what is in it already. Idempotent. */
  endInput(id: string, process: SpawnedProcess, call: RuntimeCall): Promise<void>;
  /** Starts a process on a terminal of this size. It is an execution: `quiesce` ends it when its service is gone. */
  openTerminal(id: string, spec: ExecSpec, size: TerminalSize, call: RuntimeCall): Promise<TerminalExecution>;
  /**
   * Ends what an earlier service started by `exec` in this container, which has no owner any more that would end it at its
   * deadline: each execution of another instance whose process still runs, with everything it started. What a
   * process that had exited left in the background lives on, and so do this instance's executions. If a tree cannot be
   * ended alone, the container is stopped. A container that is gone is quiet; a paused one stays paused. Idempotent.
   */
  quiesce(id: string, call: RuntimeCall): Promise<void>;
  /** A container that is frozen while idle is not thawed for that: its processes are looked at. */
  liveness(id: string, call: RuntimeCall): Promise<Liveness>;
  /**
   * Those of these booted containers that have died. It is a look from outside that asks none of them, cheap enough to be
   * repeated all the time: one that hangs is not among them.
   */
  findDead(ids: readonly string[], call: RuntimeCall): Promise<readonly string[]>;
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
  /**
   * Ends what it holds ready for containers to come, and what an earlier service has left of that. The containers that are there
   * stay as they are. A runtime that was not opened can be closed too.
   */
  close(call: RuntimeCall): Promise<void>;
  /** Ids of all containers of this runtime's own state directory, dead ones included. */
  list(call: RuntimeCall): Promise<readonly string[]>;
}

/**
 * What a runtime can get ready before it is asked for: for speed alone, and so optional. A caller that leaves all of this out
 * gets the same results, later.
 */
export interface Prewarm {
  /**
   * Says that a caller waits for the next `start` of this container, which is to follow at once: it may take what is held
   * ready for such a start, and another is made ready afterwards.
   */
  hurry(id: string): void;
  /** Gets ready for executions like this one, as far as it can; settles when it is, and never fails. */
  anticipate(id: string, spec: ExecSpec, call: RuntimeCall): Promise<void>;
  /** Says that no execution is to come for now: nothing is made ready in the container until one comes after all. */
  expectNone(id: string): void;
}
