import { type ChildProcess, type ChildProcessWithoutNullStreams, type StdioOptions, spawn } from "node:child_process";
import { open } from "node:fs/promises";
import type { Readable, Writable } from "node:stream";
import { SandboxError } from "../error/sandbox-error.ts";
import { collect, NO_OUTPUT } from "./collect.ts";
import type {
  CommandExit,
  CommandResult,
  CommandRunner,
  CommandSpec,
  RunningCommand,
  RunSpec,
} from "./command-runner.ts";
import { createFifoSupply, type FifoSupply } from "./fifo-supply.ts";
import { onceNotBusy, spawned, startFailure } from "./spawned.ts";
import { supervise } from "./supervise.ts";

const DEFAULT_MAX_OUTPUT_BYTES = 1024 * 1024;
/** Where programs are found when the service's own PATH says nothing about the system directories. */
const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** How long the output of an ended program may stay open in the hands of its descendants. */
const PIPE_GRACE_MS = 1000;

interface Stdio {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

/** Runs programs as children of this process. `path` is the PATH they are looked up in and given. */
export function createChildCommandRunner(options: { readonly path?: string } = {}): CommandRunner {
  const path = options.path ?? SYSTEM_PATH;
  const fifos = createFifoSupply(path);

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
    await using ends = await takeThree(fifos);
    try {
      const child = spawnChild(spec, ends.descriptors);
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

  return {
    start,
    run: async (spec, { signal } = {}) =>
      spec.outputPath === undefined
        ? await runCollecting(spec, signal)
        : await runIntoFile(spec, spec.outputPath, signal),
  };
}

/** The three fifos of a child. Disposal closes the child's ends in this process, whose copies the child has by then. */
async function takeThree(fifos: FifoSupply) {
  const taken = await Promise.allSettled([fifos.take("to_child"), fifos.take("from_child"), fifos.take("from_child")]);
  const all = taken.filter((one) => one.status === "fulfilled").map(({ value }) => value);
  for (const { stream } of all) stream.on("error", () => undefined);
  const [stdin, stdout, stderr] = all;
  if (stdin === undefined || stdout === undefined || stderr === undefined) {
    for (const { stream } of all) stream.destroy();
    await Promise.all(all.map(({ childEnd }) => childEnd.close()));
    throw taken.find((one) => one.status === "rejected")?.reason;
  }
  return {
    descriptors: all.map(({ childEnd }) => childEnd.fd),
    stdio: { stdin: stdin.stream, stdout: stdout.stream, stderr: stderr.stream } satisfies Stdio,
    destroyStreams: () => {
      for (const { stream } of all) stream.destroy();
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(all.map(({ childEnd }) => childEnd.close()));
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

function exitCodeOf(spec: CommandSpec, exit: CommandExit, signal: AbortSignal | undefined): number {
  if (exit.kind === "exited") return exit.exitCode;
  const ownEnd =
    exit.deadline === "passed" ? `ended at its deadline of ${String(spec.deadlineMs)} ms` : `ended by ${exit.signal}`;
  const how = signal?.aborted === true ? "cancelled" : ownEnd;
  throw new SandboxError("COMMAND_OUTCOME_UNKNOWN", `${spec.command} was ${how}`, {
    metadata: { command: spec.command, signal: exit.signal },
  });
}
