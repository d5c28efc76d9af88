import type { LaunchOptions, SandboxProcess, TerminalSize } from "./sandbox-processes.ts";

/** How a program is started in a terminal. */
export interface TerminalOptions extends Omit<LaunchOptions, "exposePort"> {
  /** `bash`, or `sh` if there is none, unless given. */
  readonly binary?: string;
  /** 80 x 24 unless given. */
  readonly size?: TerminalSize;
}

/** A process with a terminal. */
export type SandboxTerminal = SandboxProcess;
