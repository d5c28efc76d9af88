import type { ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import type { CommandExit, CommandSpec, RunningCommand } from "./command-runner.ts";

/** The longest time a timer can wait; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export interface Supervision {
  readonly spec: CommandSpec;
  readonly signal: AbortSignal | undefined;
  /** What this process reads of the child. */
  readonly outputs: readonly Readable[];
  /** How long a killed child's outputs may stay open in the hands of descendants that left its process group. */
  readonly pipeGraceMs: number;
}

/**
 * Owns a started child: kills its process group at its deadline and when the caller's signal says so. Both also bound how
 * long descendants may hold the outputs of a child that has ended.
 */
export function supervise(
  child: ChildProcess,
  { spec, signal, outputs, pipeGraceMs }: Supervision,
): Pick<RunningCommand, "pid" | "ended" | "exit" | "kill"> {
  const pid = child.pid ?? 0;
  let hasEnded = false;
  let deadlinePassed = false;
  const closeOutputs = (): void => {
    for (const output of outputs) output.destroy();
  };
  const kill = (name: NodeJS.Signals = "SIGKILL"): void => {
    if (hasEnded) return;
    try {
      process.kill(-pid, name);
    } catch {
      // The group is gone already; its exit event is on the way.
    }
    if (name === "SIGKILL") child.once("exit", () => setTimeout(closeOutputs, pipeGraceMs).unref());
  };
  const giveUp = (): void => {
    if (hasEnded) closeOutputs();
    else kill();
  };
  const onDeadline = (): void => {
    deadlinePassed = true;
    giveUp();
  };
  // The child and its streams keep this process up for as long as the timer matters.
  const timer = setTimeout(onDeadline, Math.min(spec.deadlineMs, MAX_TIMER_MS)).unref();
  signal?.addEventListener("abort", giveUp, { once: true });

  const ended = new Promise<CommandExit>((resolve) => {
    child.once("exit", (exitCode, name) => {
      hasEnded = true;
      resolve(
        exitCode === null
          ? { kind: "signaled", signal: name ?? "SIGKILL", deadline: deadlinePassed ? "passed" : "kept" }
          : { kind: "exited", exitCode },
      );
    });
  });
  const exit = Promise.all([ended, ...outputs.map(closed)]).then(([result]) => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", giveUp);
    return result;
  });
  // The signal may have come while the system was starting the child.
  if (signal?.aborted === true) giveUp();
  return { pid, ended, exit, kill };
}

async function closed(stream: Readable): Promise<void> {
  if (!stream.closed) await new Promise<void>((resolve) => stream.once("close", resolve));
}
