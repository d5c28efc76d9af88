import { type Process, ProcessExitReason, ProcessState } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { EXEC_EXIT } from "../exit-code.ts";
import { enumWord, toIso } from "../sandbox-view.ts";

const SIGKILL_EXIT = 137;

/** The documented shape of a process under `--json`. */
export interface ProcessView {
  readonly processId: string;
  readonly command: readonly string[];
  readonly state: string;
  readonly address: string | null;
  readonly exitCode: number | null;
  readonly exitSignal: number | null;
  /** Why it ended; null while it runs. */
  readonly exitReason: string | null;
  readonly startedAt: string | null;
  readonly exitedAt: string | null;
  readonly outputBytes: number;
  readonly inputBytes: number;
  readonly generation: number;
  readonly terminal: boolean;
}

export function toProcessView(process: Process): ProcessView {
  const { processId, binary, args, state, address, exitReason, exitSignal } = process;
  return {
    processId,
    command: [binary, ...args],
    state: enumWord(ProcessState[state]),
    address: address === "" ? null : address,
    exitCode: process.exitCode ?? null,
    exitSignal: exitSignal === 0 ? null : exitSignal,
    exitReason: hasEnded(process) ? enumWord(ProcessExitReason[exitReason]) : null,
    startedAt: toIso(process.startedAt),
    exitedAt: toIso(process.exitedAt),
    outputBytes: Number(process.outputBytes),
    inputBytes: Number(process.inputBytes),
    generation: process.generation,
    terminal: process.terminal,
  };
}

export const hasEnded = ({ state }: Process): boolean => state === ProcessState.EXITED;

/** The exit code that the command line passes on for an ended process. */
export function processExitCode({ exitCode, exitSignal, exitReason }: Process): number {
  if (exitCode !== undefined) return exitCode;
  if (exitSignal > 0) return 128 + exitSignal;
  return exitReason === ProcessExitReason.OOM ? SIGKILL_EXIT : EXEC_EXIT.turnboxFailed;
}

/** Why a process ended other than by itself or a signal, in words; undefined otherwise. */
export function describeLoss({ exitReason }: Process): string | undefined {
  switch (exitReason) {
    case ProcessExitReason.OOM:
      return "the sandbox ran out of memory";
    case ProcessExitReason.SANDBOX_LOST:
      return "the sandbox died";
    case ProcessExitReason.STOPPED:
      return "a rollback or a destroy stopped it";
    case ProcessExitReason.TERMINAL_CLOSED:
      return "the host's service ended, and the terminal with it";
    default:
      return undefined;
  }
}
