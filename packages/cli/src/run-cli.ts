import { CommanderError } from "commander";
import { SandboxError } from "@turnbox/core";
import { EXEC_EXIT, EXIT, exitCodeOf, PASSING_VERBS } from "./exit-code.ts";
import { findCommand } from "./help/find-command.ts";
import { createInvocation } from "./invocation.ts";
import { createOutput } from "./output.ts";
import { createProgram } from "./program.ts";
import type { Surroundings } from "./surroundings.ts";

/** Their own failures have an exit code that commands do not use. */
const PASSING: ReadonlySet<string | undefined> = new Set(PASSING_VERBS);

/** Runs one command line (without `node` and the script) to its end and returns the exit code. Never throws. */
export async function runCli(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const invocation = createInvocation(surroundings);
  const program = createProgram(invocation);
  try {
    await program.parseAsync([...args], { from: "user" });
    return invocation.exitCode();
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) return EXIT.ok;
    const isUsage = thrown instanceof CommanderError;
    const error = isUsage ? usageError(thrown) : named(thrown);
    const { path } = findCommand(program, ownArgs(args));
    const remedy = isUsage ? `Run \`${["turnbox", ...path, "--help"].join(" ")}\`.` : undefined;
    await createOutput(surroundings, wantsJson(args) ? "json" : "text").error(error, remedy);
    return PASSING.has(path[0]) && error.reason !== "CANCELLED" ? EXEC_EXIT.turnboxFailed : exitCodeOf(error);
  }
}

/** On one line, also if a suggestion stands on a second one. */
function usageError(error: CommanderError): SandboxError {
  const message =
    error.code === "commander.help" ? "a verb is missing" : error.message.replace(/^error: /, "").replaceAll("\n", " ");
  return new SandboxError("INVALID_ARGUMENT", message);
}

/** An unexpected failure is shown with its own words: there is no log to look it up in. */
function named(thrown: unknown): SandboxError {
  const error = SandboxError.from(thrown);
  if (error === thrown || error.reason !== "INTERNAL" || !(thrown instanceof Error)) return error;
  return new SandboxError("INTERNAL", thrown.message, { cause: thrown });
}

const ownArgs = (args: readonly string[]): readonly string[] =>
  args.includes("--") ? args.slice(0, args.indexOf("--")) : args;

/** Known without parsing, because what cannot be parsed is reported in the wanted format too. */
const wantsJson = (args: readonly string[]): boolean => ownArgs(args).includes("--json");
