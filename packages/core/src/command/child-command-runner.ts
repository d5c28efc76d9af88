import { type ChildProcess, type ChildProcessWithoutNullStreams, type StdioOptions, spawn } from "node:child_process";
import { open } from "node:fs/promises";
import type { Readable } from "node:stream";
import type { ChildStdio, Stdio } from "./child-stdio.ts";
import type { CommandResult, CommandRunner, CommandSpec, RunningCommand, RunSpec } from "./command-runner.ts";
import { SandboxError } from "../error/sandbox-error.ts";
import { exitCodeOf } from "./exit-code.ts";
import { onceNotBusy, spawned, startFailure } from "./spawned.ts";
import { supervise } from "./supervise.ts";
import { SYSTEM_PATH } from "./system-path.ts";

/** How much of each stream is kept unless the command says otherwise. */
export const DEFAULT_MAX_OUTPUT_BYTES = 1024 * 1024;
/** How long the output of an ended program may stay open in the hands of its descendants. */
const PIPE_GRACE_MS = 1000;

export interface ChildCommandRunnerOptions {
  /** The PATH that programs are looked up in and given. Default `SYSTEM_PATH`. */
  readonly path?: string;
  /** Makes the streams of a command that asks for `fifos`. By default such a command is refused with `INTERNAL`. */
  readonly takeFifos?: () => Promise<ChildStdio>;
}

/** Runs programs as children of this process. */
export function createChildCommandRunner(options: ChildCommandRunnerOptions = {}): CommandRunner {
  const runner = new ChildCommandRunner(options);
  return {
    start: (spec, { signal } = {}) => runner.start(spec, signal),
    run: (spec, { signal } = {}) => runner.run(spec, signal),
  };
}

class ChildCommandRunner {
  readonly #path: string;
  readonly #takeFifos: () => Promise<ChildStdio>;

  constructor({ path = SYSTEM_PATH, takeFifos = refuseFifos }: ChildCommandRunnerOptions) {
    this.#path = path;
    this.#takeFifos = takeFifos;
  }

  async start(spec: CommandSpec, signal: AbortSignal | undefined): Promise<RunningCommand> {
    return await onceNotBusy(async () => {
      signal?.throwIfAborted();
      return await (spec.stdio === "fifos" ? this.#startOnFifos(spec, signal) : this.#startOnSockets(spec, signal));
    });
  }

  async run(spec: RunSpec, signal: AbortSignal | undefined): Promise<CommandResult> {
    return spec.outputPath === undefined
      ? await this.#runCollecting(spec, signal)
      : await this.#runIntoFile(spec, spec.outputPath, signal);
  }

  async #runIntoFile(spec: RunSpec, outputPath: string, signal: AbortSignal | undefined): Promise<CommandResult> {
    await using output = await open(outputPath, "a", 0o600);
    const child = await onceNotBusy(async () => {
      signal?.throwIfAborted();
      const started = this.#spawn(spec, ["ignore", output.fd, output.fd]);
      await spawned(started, spec);
      return started;
    });
    const { exit } = supervise(child, { spec, signal, outputs: [], pipeGraceMs: PIPE_GRACE_MS });
    return { exitCode: exitCodeOf(spec, await exit, signal), stdout: "", stderr: "", droppedBytes: 0 };
  }

  async #runCollecting(spec: RunSpec, signal: AbortSignal | undefined): Promise<CommandResult> {
    const command = await this.start(spec, signal);
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
  }

  async #startOnSockets(spec: CommandSpec, signal: AbortSignal | undefined): Promise<RunningCommand> {
    const child = this.#spawn(spec, "pipe") as ChildProcessWithoutNullStreams;
    // A child that ends before it has read its input closes the pipe; that is its right.
    child.stdin.on("error", () => undefined);
    await spawned(child, spec);
    return superviseOn(child, child, { spec, signal });
  }

  async #startOnFifos(spec: CommandSpec, signal: AbortSignal | undefined): Promise<RunningCommand> {
    using ends = await this.#takeFifos();
    try {
      const child = this.#spawn(spec, [...ends.descriptors]);
      await spawned(child, spec);
      return superviseOn(child, ends.stdio, { spec, signal });
    } catch (thrown) {
      ends.destroyStreams();
      throw thrown;
    }
  }

  #spawn(spec: CommandSpec, stdio: StdioOptions): ChildProcess {
    try {
      return spawn(spec.command, [...spec.args], {
        env: { PATH: this.#path, ...spec.env },
        detached: true,
        stdio,
        ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
      });
    } catch (cause) {
      throw startFailure(spec, cause);
    }
  }
}

const refuseFifos = (): Promise<never> =>
  Promise.reject(new SandboxError("INTERNAL", "this command runner has no fifos"));

function superviseOn(
  child: ChildProcess,
  { stdin, stdout, stderr }: Stdio,
  { spec, signal }: { readonly spec: CommandSpec; readonly signal: AbortSignal | undefined },
): RunningCommand {
  const outputs = [stdout, stderr];
  return { ...supervise(child, { spec, signal, outputs, pipeGraceMs: PIPE_GRACE_MS }), stdin, stdout, stderr };
}

/** The output of a collected program is read as it comes, so what is still open after the grace is held by others. */
async function cutAfterEnd(command: RunningCommand): Promise<NodeJS.Timeout> {
  await command.ended;
  return setTimeout(() => {
    command.stdout.destroy();
    command.stderr.destroy();
  }, PIPE_GRACE_MS);
}

/** What was kept of a stream. */
interface Collected {
  readonly text: string;
  readonly droppedBytes: number;
}

const NO_OUTPUT: Collected = { text: "", droppedBytes: 0 };

/** Reads a stream to its end and keeps the first `limit` bytes; the rest is counted. */
async function collect(stream: Readable, limit: number): Promise<Collected> {
  const kept: Buffer[] = [];
  let keptBytes = 0;
  let droppedBytes = 0;
  stream.on("data", (chunk: Buffer) => {
    const room = Math.max(0, limit - keptBytes);
    if (room > 0) kept.push(chunk.subarray(0, room));
    keptBytes += Math.min(room, chunk.length);
    droppedBytes += Math.max(0, chunk.length - room);
  });
  // A pipe that breaks ends like one that is closed: what came before it counts.
  stream.on("error", () => undefined);
  if (!stream.closed) await new Promise<void>((resolve) => stream.once("close", resolve));
  return { text: Buffer.concat(kept).toString("utf8"), droppedBytes };
}
