import { type ChildProcess, type ChildProcessWithoutNullStreams, type StdioOptions, spawn } from "node:child_process";
import { open } from "node:fs/promises";
import type { Aide } from "../aide/aide.ts";
import { collect, NO_OUTPUT } from "./collect.ts";
import type { CommandResult, CommandRunner, CommandSpec, RunningCommand, RunSpec } from "./command-runner.ts";
import { exitCodeOf } from "./exit-code.ts";
import { createFifoSupply } from "./fifo-supply.ts";
import { type Stdio, takeStdio } from "./fifo-stdio.ts";
import { runByAide } from "./run-by-aide.ts";
import { onceNotBusy, spawned, startFailure } from "./spawned.ts";
import { supervise } from "./supervise.ts";
import { SYSTEM_PATH } from "./system-path.ts";

const DEFAULT_MAX_OUTPUT_BYTES = 1024 * 1024;
/** How long the output of an ended program may stay open in the hands of its descendants. */
const PIPE_GRACE_MS = 1000;

export interface ChildCommandRunnerOptions {
  /** The PATH that programs are looked up in and given. */
  readonly path?: string;
  /** Where given, programs that are run to their end without input are children of it. */
  readonly aide?: Aide;
}

/** Runs programs as children of this process, or of its aide. */
export function createChildCommandRunner({ path = SYSTEM_PATH, aide }: ChildCommandRunnerOptions = {}): CommandRunner {
  const fifos = createFifoSupply({ path, ...(aide && { aide }) });

  const spawnChild = (spec: CommandSpec, stdio: StdioOptions) => {
    try {
      return spawn(spec.command, [...spec.args], {
        env: { PATH: path, ...spec.env },
        detached: true,
        stdio,
        ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
      });
    } catch (cause) {
      throw startFailure(spec, cause);
    }
  };

  const superviseOn = (
    child: ChildProcess,
    stdio: Stdio,
    spec: CommandSpec,
    signal: AbortSignal | undefined,
  ): RunningCommand => {
    const { stdin, stdout, stderr } = stdio;
    const outputs = [stdout, stderr];
    return { ...supervise(child, { spec, signal, outputs, pipeGraceMs: PIPE_GRACE_MS }), stdin, stdout, stderr };
  };

  const startOnSockets = async (spec: CommandSpec, signal: AbortSignal | undefined): Promise<RunningCommand> => {
    const child = spawnChild(spec, "pipe") as ChildProcessWithoutNullStreams;
    // A child that ends before it has read its input closes the pipe; that is its right.
    child.stdin.on("error", () => undefined);
    await spawned(child, spec);
    return superviseOn(child, child, spec, signal);
  };

  const startOnFifos = async (spec: CommandSpec, signal: AbortSignal | undefined): Promise<RunningCommand> => {
    await using ends = await takeStdio(fifos);
    try {
      const child = spawnChild(spec, [...ends.descriptors]);
      await spawned(child, spec);
      return superviseOn(child, ends.stdio, spec, signal);
    } catch (thrown) {
      ends.destroyStreams();
      throw thrown;
    }
  };

  const start: CommandRunner["start"] = async (spec, { signal } = {}) => {
    return await onceNotBusy(async () => {
      signal?.throwIfAborted();
      return await (spec.stdio === "fifos" ? startOnFifos(spec, signal) : startOnSockets(spec, signal));
    });
  };

  const runIntoFile = async (spec: RunSpec, outputPath: string, signal?: AbortSignal): Promise<CommandResult> => {
    await using output = await open(outputPath, "a", 0o600);
    const child = await onceNotBusy(async () => {
      signal?.throwIfAborted();
      const started = spawnChild(spec, ["ignore", output.fd, output.fd]);
      await spawned(started, spec);
      return started;
    });
    const { exit } = supervise(child, { spec, signal, outputs: [], pipeGraceMs: PIPE_GRACE_MS });
    return { exitCode: exitCodeOf(spec, await exit, signal), stdout: "", stderr: "", droppedBytes: 0 };
  };

  const runCollecting = async (spec: RunSpec, signal?: AbortSignal): Promise<CommandResult> => {
    const command = await start(spec, signal === undefined ? {} : { signal });
    const limit = spec.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES;
    const outputs = [collect(command.stdout, limit), collect(command.stderr, limit)];
    command.stdin.end(spec.stdin ?? "");
    const cut = await cutAfterEnd(command);
    const exit = await command.exit;
    clearTimeout(cut);
    const [stdout = NO_OUTPUT, stderr = NO_OUTPUT] = await Promise.all(outputs);
    return {
      exitCode: exitCodeOf(spec, exit, signal),
      stdout: stdout.text,
      stderr: stderr.text,
      droppedBytes: stdout.droppedBytes + stderr.droppedBytes,
    };
  };

  const runAsOwn = async (spec: RunSpec, signal?: AbortSignal): Promise<CommandResult> =>
    spec.outputPath === undefined
      ? await runCollecting(spec, signal)
      : await runIntoFile(spec, spec.outputPath, signal);

  return {
    start,
    run: async (spec, { signal } = {}) => {
      if (aide === undefined || spec.stdin !== undefined || spec.stdio === "fifos") return await runAsOwn(spec, signal);
      const order = {
        spec,
        env: { PATH: path, ...spec.env },
        maxOutputBytes: spec.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES,
        signal,
      };
      const result = await onceNotBusy(async () => {
        signal?.throwIfAborted();
        return await runByAide(aide, order);
      });
      return result ?? (await runAsOwn(spec, signal));
    },
  };
}

/** The output of a collected program is read as it comes, so what is still open after the grace is held by others. */
async function cutAfterEnd(command: RunningCommand): Promise<NodeJS.Timeout> {
  await command.ended;
  return setTimeout(() => {
    command.stdout.destroy();
    command.stderr.destroy();
  }, PIPE_GRACE_MS);
}
