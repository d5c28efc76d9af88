import { SandboxError } from "../error/sandbox-error.ts";
import type { CommandExit, CommandSpec } from "./command-runner.ts";

/** The exit code of a program that was run to its end; throws `COMMAND_OUTCOME_UNKNOWN` where it did not come to it by itself. */
export function exitCodeOf(spec: CommandSpec, exit: CommandExit, signal: AbortSignal | undefined): number {
  if (exit.kind === "exited") return exit.exitCode;
  const ownEnd =
    exit.deadline === "passed" ? `ended at its deadline of ${String(spec.deadlineMs)} ms` : `ended by ${exit.signal}`;
  const how = signal?.aborted === true ? "cancelled" : ownEnd;
  throw new SandboxError("COMMAND_OUTCOME_UNKNOWN", `${spec.command} was ${how}`, {
    metadata: { command: spec.command, signal: exit.signal },
  });
}
