import { type ExecuteToolResponse, ExitReason } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { EXEC_EXIT } from "./exit-code.ts";
import { enumWord } from "./sandbox-view.ts";

const SIGKILL_EXIT = 137;

/** How a command ended, in one word: exited, timed_out, killed, oom, sandbox_lost, unknown. */
export const exitReasonWord = ({ exitReason }: ExecuteToolResponse): string => enumWord(ExitReason[exitReason]);

/** The exit code that `turnbox exec` passes on. */
export function execExitCode({ exitReason, exitCode }: ExecuteToolResponse): number {
  switch (exitReason) {
    case ExitReason.TIMED_OUT:
      return EXEC_EXIT.timedOut;
    case ExitReason.SANDBOX_LOST:
      return EXEC_EXIT.turnboxFailed;
    case ExitReason.OOM:
    case ExitReason.KILLED:
      return exitCode ?? SIGKILL_EXIT;
    default:
      return exitCode ?? EXEC_EXIT.turnboxFailed;
  }
}
