import { PassThrough } from "node:stream";
import { buffer } from "node:stream/consumers";
import type {
  CommandExit,
  CommandResult,
  CommandRunner,
  CommandSpec,
  RunningCommand,
  RunSpec,
} from "../command/command-runner.ts";
import { SandboxError } from "../error/sandbox-error.ts";

/** What a scripted program does. */
export type ScriptedAnswer =
  | {
      readonly kind: "exits";
      readonly exitCode?: number;
      readonly stdout?: string;
      readonly stderr?: string;
    }
  /** Copies its input to its output. */
  | { readonly kind: "copies_input" }
  /** Runs until it is killed. */
  | { readonly kind: "waits" }
  | { readonly kind: "signaled"; readonly signal: NodeJS.Signals }
  | { readonly kind: "missing" };

export interface ScriptedCommandRunner extends CommandRunner {
  /** Every program that was asked for, in order. */
  readonly calls: readonly CommandSpec[];
}

/** A `CommandRunner` that starts nothing: `script` says what each program would do. */
export function createScriptedCommandRunner(script: (spec: CommandSpec) => ScriptedAnswer): ScriptedCommandRunner {
  const calls: CommandSpec[] = [];

  const start: CommandRunner["start"] = (spec, { signal } = {}) => {
    calls.push(spec);
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    const answer = script(spec);
    if (answer.kind === "missing") return Promise.reject(missing(spec));
    return Promise.resolve(enact(answer, spec, signal));
  };

  const run: CommandRunner["run"] = async (spec, options = {}) => {
    const command = await start(spec, options);
    const outputs = [buffer(command.stdout), buffer(command.stderr)];
    command.stdin.end(spec.stdin ?? "");
    const exit = await command.exit;
    const [stdout = NONE, stderr = NONE] = await Promise.all(outputs);
    if (exit.kind === "exited") return toResult(spec, exit.exitCode, [stdout, stderr]);
    const atDeadline =
      exit.deadline === "passed" ? `ended at its deadline of ${String(spec.deadlineMs)} ms` : `ended by ${exit.signal}`;
    const how = options.signal?.aborted === true ? "cancelled" : atDeadline;
    throw new SandboxError("COMMAND_OUTCOME_UNKNOWN", `${spec.command} was ${how}`, {
      metadata: { command: spec.command, signal: exit.signal },
    });
  };

  return { calls, run, start };
}

const NONE = Buffer.alloc(0);
const MAX_TIMER_MS = 2 ** 31 - 1;

function missing(spec: CommandSpec): SandboxError {
  return new SandboxError("COMMAND_MISSING", `${spec.command} cannot be started`, {
    metadata: { command: spec.command },
  });
}

function enact(
  answer: Exclude<ScriptedAnswer, { kind: "missing" }>,
  spec: CommandSpec,
  signal?: AbortSignal,
): RunningCommand {
  const stdin = new PassThrough();
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  let resolve: (exit: CommandExit) => void = () => undefined;
  const ended = new Promise<CommandExit>((settle) => {
    resolve = settle;
  });
  const endBy = (name: NodeJS.Signals, deadline: "passed" | "kept"): void => {
    resolve({ kind: "signaled", signal: name, deadline });
  };
  const onAbort = (): void => {
    endBy("SIGKILL", "kept");
  };
  const timer = setTimeout(
    () => {
      endBy("SIGKILL", "passed");
    },
    Math.min(spec.deadlineMs, MAX_TIMER_MS),
  );
  signal?.addEventListener("abort", onAbort, { once: true });

  if (answer.kind === "signaled") endBy(answer.signal, "kept");
  if (answer.kind === "exits") {
    stdout.write(answer.stdout ?? "");
    stderr.write(answer.stderr ?? "");
    resolve({ kind: "exited", exitCode: answer.exitCode ?? 0 });
  }
  if (answer.kind === "copies_input") {
    stdin.pipe(stdout, { end: false });
    stdin.once("end", () => {
      resolve({ kind: "exited", exitCode: 0 });
    });
  }
  const exit = ended.then((result) => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
    stdin.destroy();
    stdout.end();
    stderr.end();
    return result;
  });
  return {
    pid: 1,
    stdin,
    stdout,
    stderr,
    ended,
    exit,
    kill: (name = "SIGKILL") => {
      endBy(name, "kept");
    },
  };
}

function toResult(spec: RunSpec, exitCode: number, outputs: readonly Buffer[]): CommandResult {
  if (spec.outputPath !== undefined) return { exitCode, stdout: "", stderr: "", droppedBytes: 0 };
  const limit = spec.maxOutputBytes ?? 1024 * 1024;
  const [stdout = "", stderr = ""] = outputs.map((output) => output.subarray(0, limit).toString("utf8"));
  const droppedBytes = outputs.reduce((sum, output) => sum + Math.max(0, output.length - limit), 0);
  return { exitCode, stdout, stderr, droppedBytes };
}
