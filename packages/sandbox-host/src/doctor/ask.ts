import { type CommandRunner, hasReason } from "@turnbox/core";

/** The result of a program: its output, or that it did not end in time, or that it cannot be run. */
export type Answer =
  | { readonly kind: "ended"; readonly exitCode: number; readonly stdout: string; readonly stderr: string }
  | { readonly kind: "silent" }
  | { readonly kind: "unrunnable" };

export interface Question {
  readonly argv: readonly [string, ...string[]];
  readonly deadlineMs: number;
}

export interface AskDeps {
  readonly runner: CommandRunner;
  readonly signal: AbortSignal;
}

/** Runs a program that changes nothing. Only the caller's own signal throws. */
export async function ask(
  { argv: [command, ...args], deadlineMs }: Question,
  { runner, signal }: AskDeps,
): Promise<Answer> {
  try {
    // The English output is parsed.
    const result = await runner.run({ command, args, deadlineMs, env: { LC_ALL: "C" } }, { signal });
    return {
      kind: "ended",
      exitCode: result.exitCode,
      stdout: result.stdout.trim(),
      stderr: result.stderr.trim(),
    };
  } catch (thrown) {
    signal.throwIfAborted();
    return { kind: hasReason(thrown, "COMMAND_OUTCOME_UNKNOWN") ? "silent" : "unrunnable" };
  }
}
