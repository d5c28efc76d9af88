import type { CallOptions, KeyedOptions } from "../call.ts";

/** In characters, each from 1 to 1000. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** `starting` until the exposed port accepts, if there is one. */
export type ProcessState = "starting" | "running" | "exited";
/** Why a process ended. `stopped`: by a rollback or a destroy. `terminal_closed`: its terminal ended with the host's service. */
export type ProcessExitReason = "exited" | "signaled" | "oom" | "sandbox_lost" | "stopped" | "terminal_closed";

/** What is known of a launched process. */
export interface ProcessInfo {
  readonly id: string;
  readonly binary: string;
  readonly args: readonly string[];
  readonly state: ProcessState;
  /** `host:port` of the exposed port. */
  readonly address: string | undefined;
  readonly exitCode: number | undefined;
  readonly exitSignal: number | undefined;
  readonly exitReason: ProcessExitReason | undefined;
  readonly startedAt: Date;
  readonly exitedAt: Date | undefined;
  readonly outputBytes: number;
  readonly inputBytes: number;
  readonly generation: number;
  readonly terminal: boolean;
}

/** How a process is started. */
export interface LaunchOptions extends KeyedOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The port it listens on; `launch` does not wait for it, `ready()` does. */
  readonly exposePort?: number;
}

/** Which part of the output. */
export interface OutputOptions extends CallOptions {
  /** The first byte; 0 unless given. */
  readonly from?: number;
  /** Goes on until the process has ended; on unless `false`. */
  readonly follow?: boolean;
}

/** A piece of the output of a process. */
export interface ProcessOutput {
  readonly data: Uint8Array;
  /** Offset of the first byte of `data`. */
  readonly offset: number;
  /** Bytes just before these that the journal no longer has. */
  readonly droppedBytes: number;
}

/** Names as in `kill -l` with SIG, or the number. */
export type Signal = NodeJS.Signals | number;

/** A long-running process. It outlives the connection, the client and restarts of the host's service. */
export interface SandboxProcess {
  readonly id: string;
  /** What the host said about it when this handle was made. `status()` asks again. */
  readonly known: ProcessInfo;
  status(options?: CallOptions): Promise<ProcessInfo>;
  /** Waits until it is `running`, so that its exposed port accepts, or has ended. */
  ready(options?: CallOptions): Promise<ProcessInfo>;
  /** stdout and stderr in the order in which they were written. Resumes by offset after a dropped connection. */
  output(options?: OutputOptions): AsyncIterable<ProcessOutput>;
  /**
   * Hands the output to `onOutput`, each byte once and in order; the next piece waits for it. Returns the ended process, or
   * undefined if the output is read without `follow` and the process goes on.
   */
  read(onOutput: (output: ProcessOutput) => Promise<void>, options?: OutputOptions): Promise<ProcessInfo | undefined>;
  /** The output as lines of text, without line ends. */
  lines(options?: OutputOptions): AsyncIterable<string>;
  /** Writes to its input; bytes arrive once and in order, also over a dropped connection. */
  write(data: string | Uint8Array, options?: CallOptions): Promise<void>;
  closeInput(options?: CallOptions): Promise<void>;
  /** Gives its terminal another size; a process without a terminal refuses it. */
  resize(size: TerminalSize, options?: CallOptions): Promise<void>;
  /** SIGTERM unless given. */
  kill(signal?: Signal, options?: CallOptions): Promise<ProcessInfo>;
  /** Waits until it has ended. */
  wait(options?: CallOptions): Promise<ProcessInfo>;
}

/** The long-running processes of a sandbox. Ids belong to one generation: a rollback stops them all. */
export interface SandboxProcesses {
  launch(binary: string, options?: LaunchOptions): Promise<SandboxProcess>;
  /** A process of this generation by its id. */
  get(processId: string, options?: CallOptions): Promise<SandboxProcess>;
  list(options?: CallOptions): Promise<readonly ProcessInfo[]>;
  /** The handle of a process that was listed. Nothing is sent. */
  handle(process: ProcessInfo): SandboxProcess;
}
