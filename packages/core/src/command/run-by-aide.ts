import { constants } from "node:os";
import { type Aide, type AideEnd, AideGone, type AideProgram } from "../aide/aide.ts";
import { SandboxError } from "../error/sandbox-error.ts";
import type { CommandExit, CommandResult, RunSpec } from "./command-runner.ts";
import { exitCodeOf } from "./exit-code.ts";
import { startFailure } from "./spawned.ts";
import { MAX_TIMER_MS } from "./supervise.ts";

export interface AideOrder {
  readonly spec: RunSpec;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly maxOutputBytes: number;
  readonly signal: AbortSignal | undefined;
}

/** Runs a program as a child of the aide; undefined where there is none, and nothing has run. */
export async function runByAide(aide: Aide, order: AideOrder): Promise<CommandResult | undefined> {
  const { spec, env, maxOutputBytes, signal } = order;
  const argv = [spec.command, ...spec.args];
  if ([...argv, ...Object.entries(env).flat()].some((text) => text.includes("\0")))
    throw startFailure(spec, Object.assign(new Error("a NUL byte"), { code: "ERR_INVALID_ARG_VALUE" }));
  const program = aide.run({ argv, env, cwd: spec.cwd, outputPath: spec.outputPath, maxOutputBytes });
  if (program === undefined) return undefined;
  using bounds = boundProgram(program, order);
  const end = await program.ended.catch((thrown: unknown) => {
    throw thrown instanceof AideGone ? outcomeUnknown(spec, thrown) : startFailure(spec, thrown);
  });
  return {
    exitCode: exitCodeOf(spec, toExit(end, bounds.deadline()), signal),
    stdout: end.stdout.toString("utf8"),
    stderr: end.stderr.toString("utf8"),
    droppedBytes: end.droppedBytes,
  };
}

/** Ends it at its deadline, and when the caller's signal says so. */
function boundProgram({ kill }: AideProgram, { spec, signal }: AideOrder) {
  let deadline: "passed" | "kept" = "kept";
  const giveUp = (): void => {
    kill(constants.signals.SIGKILL);
  };
  const onDeadline = (): void => {
    deadline = "passed";
    giveUp();
  };
  const timer = setTimeout(onDeadline, Math.min(spec.deadlineMs, MAX_TIMER_MS)).unref();
  signal?.addEventListener("abort", giveUp, { once: true });
  return {
    deadline: () => deadline,
    [Symbol.dispose]: () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", giveUp);
    },
  };
}

function toExit({ status }: AideEnd, deadline: "passed" | "kept"): CommandExit {
  const number = status & 0x7f;
  if (number === 0) return { kind: "exited", exitCode: status >> 8 };
  const [name = "SIGKILL"] = Object.entries(constants.signals).find(([, value]) => value === number) ?? [];
  return { kind: "signaled", signal: name as NodeJS.Signals, deadline };
}

function outcomeUnknown({ command }: RunSpec, cause: unknown): SandboxError {
  return new SandboxError("COMMAND_OUTCOME_UNKNOWN", `nobody saw how ${command} ended`, {
    cause,
    metadata: { command },
  });
}
