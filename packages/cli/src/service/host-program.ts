import { type CommandResult, hasReason, SandboxError } from "@turnbox/core";
import { type Surroundings, writeTo } from "../surroundings.ts";
import { parseProgramFailure } from "./program-failure.ts";
import { findServiceProgram } from "./service-program.ts";

export interface HostCommand {
  readonly args: readonly string[];
  readonly deadlineMs: number;
}

/** Runs the sandbox-host's own program to its end, with its output collected. Any exit code is an answer. */
export async function runHostProgram(
  surroundings: Surroundings,
  { args, deadlineMs }: HostCommand,
  options: { readonly signal: AbortSignal },
): Promise<CommandResult> {
  const program = await findServiceProgram("@turnbox/sandbox-host", surroundings, options);
  const spec = { command: program.node, args: [program.entry, ...args], deadlineMs };
  try {
    return await surroundings.runner.run({ ...spec, env: surroundings.environment.variables }, options);
  } catch (thrown) {
    options.signal.throwIfAborted();
    if (!hasReason(thrown, "COMMAND_OUTCOME_UNKNOWN")) throw thrown;
    const what = `turnbox-sandbox-host ${args[0] ?? ""} did not come to its end`;
    throw new SandboxError("COMMAND_OUTCOME_UNKNOWN", `${what}: ${thrown.message}`, { cause: thrown });
  }
}

/** The same for a command that must succeed; it fails with the reason that the program printed. */
export async function requireHostProgram(
  surroundings: Surroundings,
  command: HostCommand,
  options: { readonly signal: AbortSignal },
): Promise<void> {
  const { exitCode, stderr } = await runHostProgram(surroundings, command, options);
  if (exitCode === 0) return;
  const what = `turnbox-sandbox-host ${command.args.join(" ")} failed with exit code ${String(exitCode)}`;
  throw parseProgramFailure(stderr, `${what}: ${stderr.trim().slice(0, 500)}`);
}

/** What of a program's stderr is looked at for the reason of its failure. */
const MAX_REASON_CHARACTERS = 4096;

/** The same for a command that may take long: what it prints goes to stderr while it runs. */
export async function runHostProgramVisibly(
  surroundings: Surroundings,
  { args, deadlineMs }: HostCommand,
  options: { readonly signal: AbortSignal },
): Promise<void> {
  const program = await findServiceProgram("@turnbox/sandbox-host", surroundings, options);
  const child = await surroundings.runner.start(
    { command: program.node, args: [program.entry, ...args], env: surroundings.environment.variables, deadlineMs },
    options,
  );
  child.stdin.end();
  const show = async (stream: AsyncIterable<Uint8Array>): Promise<string> => {
    let last = "";
    for await (const bytes of stream) {
      last = (last + Buffer.from(bytes).toString("utf8")).slice(-MAX_REASON_CHARACTERS);
      await writeTo(surroundings.stderr, bytes);
    }
    return last;
  };
  const [exit, , stderr] = await Promise.all([child.exit, show(child.stdout), show(child.stderr)]);
  if (exit.kind === "exited" && exit.exitCode === 0) return;
  options.signal.throwIfAborted();
  const how = exit.kind === "exited" ? `failed with exit code ${String(exit.exitCode)}` : `was ended by ${exit.signal}`;
  throw parseProgramFailure(stderr, `turnbox-sandbox-host ${args[0] ?? ""} ${how}; what it said is above`);
}
