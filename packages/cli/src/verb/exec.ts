import type { Command } from "commander";
import { type OutputChunk, type Sandbox, SandboxError, type ToolResult } from "@turnbox/client";
import { createCollector } from "@turnbox/client/internal";
import { execExitCode, exitReasonWord } from "../exec-result.ts";
import { EXEC_EXIT } from "../exit-code.ts";
import { parseDuration } from "../format/duration.ts";
import type { Invocation } from "../invocation.ts";
import { collect, parsePairs, type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { quoteCommand } from "../quote.ts";
import { readStdin } from "../stdin.ts";
import { writeTo } from "../surroundings.ts";

/** Most bytes of each stream in the object of `--json`. */
const MAX_JSON_BYTES = 16 * 1024 * 1024;

interface ExecOptions extends ServerOptions {
  readonly timeout?: string;
  readonly cwd?: string;
  readonly env?: readonly string[];
  /** Absent: passed on if it is no terminal and something comes. */
  readonly stdin?: boolean;
}

export function registerExec(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("exec <id> <command...>"))
      .usage("[options] <id> -- <command...>")
      .summary("run a command in a sandbox")
      .description(
        "Run a command in a sandbox, with its output as it comes and its exit code. Each word reaches the command as it is; " +
          "for pipes and variables run a shell. Stdin is passed on when it is not a terminal (at most 4 MiB, read to its end " +
          "first). Exit code 124 after a timeout, 125 when Turnbox failed and not the command.",
      )
      .option("--timeout <duration>", "kill the command after this long, like 30s or 5m")
      .option("--cwd <path>", "where to run it (default: /workspace)")
      .option("--env <key=value>", "a variable for it; may be given several times", collect)
      .option("--stdin", "wait for stdin, however long it stays silent")
      .option("--no-stdin", "do not read stdin"),
    [
      ["turnbox exec web -- ls -la /", "a command with options of its own"],
      ["turnbox exec web -- sh -c 'ls | wc -l'", "a pipe inside"],
      ["turnbox exec web -- sh < script.sh", "stdin is passed on"],
      ["turnbox exec web --timeout 30s --json -- make", "one object: stdout, stderr, exitCode, reason"],
    ],
  ).action(async (id: string, words: readonly string[], options: ExecOptions) => {
    await exec({ id, words, options }, invocation);
  });
}

interface ExecCommand {
  readonly id: string;
  readonly words: readonly string[];
  readonly options: ExecOptions;
}

async function exec({ id, words, options }: ExecCommand, invocation: Invocation): Promise<void> {
  const params = toParams(words, options);
  const stdin = await stdinOf(options, invocation);
  using turnbox = invocation.turnbox(options);
  const sandbox = await turnbox.handle(id, { signal: invocation.signal });
  const run = { sandbox, params, stdin };
  if (options.json === true) await execAsJson(run, options, invocation);
  else await execAsStreams(run, invocation);
}

function toParams(words: readonly string[], options: ExecOptions): Readonly<Record<string, unknown>> {
  const env = parsePairs(options.env, "env");
  return {
    cmd: quoteCommand(words),
    ...(options.timeout === undefined ? {} : { timeout_ms: parseDuration(options.timeout, "timeout") }),
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(Object.keys(env).length === 0 ? {} : { env }),
  };
}

async function stdinOf(options: ExecOptions, { surroundings, signal }: Invocation): Promise<Uint8Array> {
  const { stdin, stderr, clock } = surroundings;
  if (options.stdin === false || stdin.isTTY === true) return new Uint8Array();
  const onSilence = (): void => {
    stderr.write(
      "turnbox: stdin is open and silent, going on without it (--stdin waits, --no-stdin never looks)\n",
      () => undefined,
    );
  };
  return await readStdin(stdin, { clock, signal, silence: options.stdin === true ? "wait" : "do without", onSilence });
}

interface Run {
  readonly sandbox: Sandbox;
  readonly params: Readonly<Record<string, unknown>>;
  readonly stdin: Uint8Array;
}

async function execAsStreams(run: Run, invocation: Invocation): Promise<void> {
  const { stdout, stderr } = invocation.surroundings;
  const response = await stream(run, invocation.signal, async (chunk) => {
    await writeTo(chunk.stream === "stderr" ? stderr : stdout, chunk.data);
  });
  const exitCode = execExitCode(response);
  if (response.exitReason === "sandbox_lost") {
    throw new SandboxError("SANDBOX_LOST", "the sandbox died under the command", {
      metadata: { sandboxId: run.sandbox.id },
    });
  }
  // Without an exit code no process ended: the content says what the tool had against it.
  if (exitCode === EXEC_EXIT.turnboxFailed && response.exitCode === undefined)
    await writeTo(stderr, `${response.content}\n`);
  invocation.exitWith(exitCode);
}

async function execAsJson(run: Run, options: ExecOptions, invocation: Invocation): Promise<void> {
  const stdout = createCollector(MAX_JSON_BYTES);
  const stderr = createCollector(MAX_JSON_BYTES);
  const response = await stream(run, invocation.signal, async (chunk) => {
    const collector = chunk.stream === "stderr" ? stderr : stdout;
    collector.miss(chunk.droppedBytes);
    collector.add(chunk.data);
  });
  const exitCode = execExitCode(response);
  const json = {
    sandboxId: run.sandbox.id,
    toolCallId: response.toolCallId,
    stdout: stdout.text(),
    stderr: stderr.text(),
    stdoutDroppedBytes: stdout.droppedBytes(),
    stderrDroppedBytes: stderr.droppedBytes(),
    exitCode,
    reason: exitReasonWord(response),
    ...(response.exitCode === undefined ? { content: response.content } : {}),
  };
  await invocation.output(options).result({ json, text: "" });
  invocation.exitWith(exitCode);
}

/**
 * Runs the call to its end. If the connection breaks it is made again, and output goes on from its offset. A signal that ends this
 * program cancels the command; if the program is killed, the command runs on until its own time limit.
 */
async function stream(
  { sandbox, params, stdin }: Run,
  signal: AbortSignal,
  onChunk: (chunk: OutputChunk) => Promise<void>,
): Promise<ToolResult> {
  const running = sandbox.toolStream("bash", params, { stdin, signal });
  for await (const chunk of running) await onChunk(chunk);
  return await running.result();
}
