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

/** Keeps the beginning of a stream, up to a bound, and counts what it drops. */
export interface Collector {
  add(bytes: Uint8Array): void;
  /** As UTF-8; other bytes become U+FFFD. */
  text(): string;
  droppedBytes(): number;
}

export function createCollector(maxBytes: number): Collector {
  const kept: Uint8Array[] = [];
  let keptBytes = 0;
  let droppedBytes = 0;
  return {
    add: (bytes) => {
      const part = bytes.subarray(0, maxBytes - keptBytes);
      if (part.length > 0) kept.push(part);
      keptBytes += part.length;
      droppedBytes += bytes.length - part.length;
    },
    text: () => Buffer.concat(kept).toString("utf8"),
    droppedBytes: () => droppedBytes,
  };
}
