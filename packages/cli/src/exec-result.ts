import type { ToolResult } from "@turnbox/client";
import { EXEC_EXIT } from "./exit-code.ts";

const SIGKILL_EXIT = 137;

/** How a command ended, in one word: exited, timed_out, killed, oom, sandbox_lost, unknown. */
export const exitReasonWord = ({ exitReason }: ToolResult): string => exitReason ?? "unknown";

/** The exit code that `turnbox exec` passes on. */
export function execExitCode({ exitReason, exitCode }: ToolResult): number {
  switch (exitReason) {
    case "timed_out":
      return EXEC_EXIT.timedOut;
    case "sandbox_lost":
      return EXEC_EXIT.turnboxFailed;
    case "oom":
    case "killed":
      return exitCode ?? SIGKILL_EXIT;
    default:
      return exitCode ?? EXEC_EXIT.turnboxFailed;
  }
}
