import type { ProcessExitReason, ProcessInfo } from "@turnbox/client";
import { EXEC_EXIT } from "../exit-code.ts";
import { toIsoDate } from "../sandbox-view.ts";

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

export function toProcessView(process: ProcessInfo): ProcessView {
  const { id, binary, args, state, address, exitCode, exitSignal, exitReason, startedAt, exitedAt } = process;
  return {
    processId: id,
    command: [binary, ...args],
    state,
    address: address ?? null,
    exitCode: exitCode ?? null,
    exitSignal: exitSignal ?? null,
    exitReason: hasEnded(process) ? (exitReason ?? "unknown") : null,
    startedAt: startedAt.toISOString(),
    exitedAt: toIsoDate(exitedAt),
    outputBytes: process.outputBytes,
    inputBytes: process.inputBytes,
    generation: process.generation,
    terminal: process.terminal,
  };
}

export const hasEnded = ({ state }: ProcessInfo): boolean => state === "exited";

/** The exit code that the command line passes on for an ended process. */
export function processExitCode({ exitCode, exitSignal, exitReason }: ProcessInfo): number {
  if (exitCode !== undefined) return exitCode;
  if (exitSignal !== undefined) return 128 + exitSignal;
  return exitReason === "oom" ? SIGKILL_EXIT : EXEC_EXIT.turnboxFailed;
}

const LOSSES: Readonly<Partial<Record<ProcessExitReason, string>>> = {
  oom: "the sandbox ran out of memory",
  sandbox_lost: "the sandbox died",
  stopped: "a rollback or a destroy stopped it",
  terminal_closed: "the host's service ended, and the terminal with it",
};

/** Why a process ended other than by itself or a signal, in words; undefined otherwise. */
export const describeLoss = ({ exitReason }: ProcessInfo): string | undefined =>
  exitReason === undefined ? undefined : LOSSES[exitReason];
