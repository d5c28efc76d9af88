import type { CallOptions } from "../call.ts";
import type { LaunchOptions, SandboxProcess } from "./sandbox-processes.ts";

/** In characters, each from 1 to 1000. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** How a program is started in a terminal. */
export interface TerminalOptions extends Omit<LaunchOptions, "exposePort"> {
  /** `bash`, or `sh` where there is none, unless given. */
  readonly binary?: string;
  /** 80 x 24 unless given. */
  readonly size?: TerminalSize;
}

/** A process with a terminal. */
export interface SandboxTerminal extends SandboxProcess {
  resize(size: TerminalSize, options?: CallOptions): Promise<void>;
}
