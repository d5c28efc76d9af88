import { constants } from "node:os";
import { type Helper, type HelperEnd, HelperGone, type HelperProgram } from "../helper/helper.ts";
import { type CommandExit, type CommandResult, type RunSpec, SandboxError, setAlarm, systemClock } from "@turnbox/core";
import { exitCodeOf, startFailure } from "@turnbox/core/command";

export interface HelperOrder {
  readonly spec: RunSpec;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly maxOutputBytes: number;
  readonly signal: AbortSignal | undefined;
}

/** Runs a program as a child of the helper process; returns undefined if there is none, and nothing has run. */
export async function runByHelper(helper: Helper, order: HelperOrder): Promise<CommandResult | undefined> {
  const { spec, env, maxOutputBytes, signal } = order;
  const argv = [spec.command, ...spec.args];
  if ([...argv, ...Object.entries(env).flat()].some((text) => text.includes("\0")))
    throw startFailure(spec, Object.assign(new Error("a NUL byte"), { code: "ERR_INVALID_ARG_VALUE" }));
  const program = helper.run({ argv, env, cwd: spec.cwd, outputPath: spec.outputPath, maxOutputBytes });
  if (program === undefined) return undefined;
  using bounds = boundProgram(program, order);
  const end = await program.ended.catch((thrown: unknown) => {
    throw thrown instanceof HelperGone ? outcomeUnknown(spec, thrown) : startFailure(spec, thrown);
  });
  return {
    exitCode: exitCodeOf(spec, toExit(end, bounds.deadline()), signal),
    stdout: end.stdout.toString("utf8"),
    stderr: end.stderr.toString("utf8"),
    droppedBytes: end.droppedBytes,
  };
}

/** Ends it at its deadline, and when the caller's signal aborts. */
function boundProgram({ kill }: HelperProgram, { spec, signal }: HelperOrder) {
  let deadline: "passed" | "kept" = "kept";
  const giveUp = (): void => {
    kill(constants.signals.SIGKILL);
  };
  const onDeadline = (): void => {
    deadline = "passed";
    giveUp();
  };
  const turnOff = setAlarm(systemClock, spec.deadlineMs, onDeadline);
  signal?.addEventListener("abort", giveUp, { once: true });
  return {
    deadline: () => deadline,
    [Symbol.dispose]: () => {
      turnOff();
      signal?.removeEventListener("abort", giveUp);
    },
  };
}

function toExit({ status }: HelperEnd, deadline: "passed" | "kept"): CommandExit {
  const number = status & 0x7f;
  if (number === 0) return { kind: "exited", exitCode: status >> 8 };
  const [name = "SIGKILL"] = Object.entries(constants.signals).find(([, value]) => value === number) ?? [];
  return { kind: "signaled", signal: name as NodeJS.Signals, deadline };
}

function outcomeUnknown({ command }: RunSpec, cause: unknown): SandboxError {
  return new SandboxError("COMMAND_OUTCOME_UNKNOWN", `it is not known how ${command} ended`, {
    cause,
    metadata: { command },
  });
}
