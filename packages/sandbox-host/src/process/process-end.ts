import type { ProcessEnd, ProcessRow } from "../record/row.ts";
import type { ProcessLife, TerminalExit } from "../runtime/runtime.ts";
import type { Session } from "../session/session.ts";

type End = Omit<ProcessEnd, "atMs">;

const NONE = { exitCode: null, signal: null } as const;

/**
 * The end that the life of a process means for its session; null if it goes on. A process of an earlier head was stopped by
 * the rollback that made the present one, unless it had exited before; one of another container ended with that.
 */
export function endOfProcess(
  life: ProcessLife,
  { row, session }: { readonly row: ProcessRow; readonly session: Session },
): End | null {
  if (life.kind === "exited") return { reason: "exited", exitCode: life.exitCode, signal: null };
  if (row.headGeneration !== session.row.headGeneration) return { reason: "stopped", ...NONE };
  switch (life.kind) {
    case "running":
      return row.container === session.row.container ? null : { reason: "sandbox_lost", ...NONE };
    case "signaled":
      return { reason: "signaled", exitCode: null, signal: life.signal };
    case "oom":
      return { reason: "oom", ...NONE };
    case "sandbox_lost":
      return { reason: "sandbox_lost", ...NONE };
    case "unknown":
      return { reason: "exited", ...NONE };
  }
}

/**
 * The end of a process on a terminal. `isClosing`: the service ends its terminals. `isStopped`: a rollback or the end of the
 * session has ended the terminal.
 */
export function endOfTerminal(
  exit: TerminalExit,
  { isClosing, isStopped }: { readonly isClosing: boolean; readonly isStopped: boolean },
): End {
  switch (exit.kind) {
    case "exited":
      return { reason: "exited", exitCode: exit.exitCode, signal: null };
    case "signaled":
      return { reason: "signaled", exitCode: null, signal: exit.signal };
    case "oom":
      return { reason: "oom", ...NONE };
    case "sandbox_lost":
      return { reason: isStopped ? "stopped" : "sandbox_lost", ...NONE };
    case "terminal_lost":
      return { reason: isStopped ? "stopped" : "terminal_closed", ...NONE };
    case "killed":
    case "timed_out":
      if (isClosing) return { reason: "terminal_closed", ...NONE };
      return isStopped ? { reason: "stopped", ...NONE } : { reason: "signaled", exitCode: null, signal: 9 };
  }
}
