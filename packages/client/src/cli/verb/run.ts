import { constants } from "node:os";
import type { Command } from "commander";
import { invalidArgument } from "@turnbox/core";
import { parsePort } from "../../config.ts";
import { createCollector } from "../../sandbox/stream/collector.ts";
import type { Invocation } from "../invocation.ts";
import { collect, parsePairs, type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { attachProcess } from "../process/attach-process.ts";
import { launchProcess, orKill, type Program } from "../process/launch-process.ts";
import { processExitCode, toProcessView } from "../process/process-view.ts";
import { tellEnd } from "../process/tell-end.ts";
import { openLink, type SandboxLink } from "../resolve/sandbox-link.ts";
import { writeTo } from "../surroundings.ts";

/** Most bytes of output in the object of `--json`. */
const MAX_JSON_BYTES = 16 * 1024 * 1024;

interface RunOptions extends ServerOptions {
  readonly detach?: boolean;
  readonly cwd?: string;
  readonly env?: readonly string[];
  readonly port?: string;
  readonly stdin: boolean;
}

export function registerRun(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("run <id> <command...>"))
      .usage("[options] <id> -- <command...>")
      .summary("launch a process in a sandbox")
      .description(
        "Launch a process whose output is kept: `ps`, `logs`, `attach` and `kill` find it later. Without --detach its output is " +
          "shown (both streams on stdout), stdin is passed on as it comes, its end and the exit code are waited for, and " +
          "Ctrl-C ends it.",
      )
      .option("-d, --detach", "print the process's id and leave it running")
      .option("--cwd <path>", "where to run it (default: /workspace)")
      .option("--env <key=value>", "a variable for it; may be given several times", collect)
      .option("--port <port>", "the port that it will listen on, to be reached from outside")
      .option("--no-stdin", "do not pass stdin on"),
    [
      ["turnbox run web -d --port 8000 -- python3 -m http.server 8000", "a server in the background"],
      ["turnbox run web -- make test", "shown, and kept for `turnbox logs`"],
    ],
  ).action(async (id: string, words: readonly string[], options: RunOptions) => {
    const program = toProgram(words, options);
    const { signal, surroundings } = invocation;
    using server = await invocation.server(options);
    using link = await openLink({ server, reference: id, clock: surroundings.clock, signal }, invocation);
    if (options.detach === true) await detach({ link, program, options }, invocation);
    else await follow({ id, link, program, options }, invocation);
  });
}

function toProgram([binary = "", ...args]: readonly string[], options: RunOptions): Program {
  const exposePort = options.port === undefined ? 0 : parsePort(options.port, "port");
  if (options.port !== undefined && exposePort === 0) throw invalidArgument("port", "must be from 1 to 65535");
  return { binary, args, env: parsePairs(options.env, "env"), cwd: options.cwd ?? "", exposePort };
}

interface Run {
  readonly link: SandboxLink;
  readonly program: Program;
  readonly options: RunOptions;
}

async function detach({ link, program, options }: Run, invocation: Invocation): Promise<void> {
  const process = await launchProcess(link, program, invocation);
  await invocation.output(options).result({
    json: { sandboxId: link.sandboxId, process: toProcessView(process) },
    text: `${process.processId}\n`,
  });
}

async function follow(
  { id, link, program, options }: Run & { readonly id: string },
  invocation: Invocation,
): Promise<void> {
  const { stdout } = invocation.surroundings;
  const process = await launchProcess(link, program, invocation);
  const collector = options.json === true ? createCollector(MAX_JSON_BYTES) : undefined;
  const onBytes = async (bytes: Uint8Array): Promise<void> => {
    if (collector === undefined) await writeTo(stdout, bytes);
    else collector.add(bytes);
  };
  const stdin = options.stdin ? "forward" : "none";
  const kill = { processId: process.processId, signal: constants.signals.SIGTERM };
  const end = await orKill(link, kill, () => attachProcess(link, { process, from: 0n, stdin, onBytes }, invocation));
  await tellEnd(end, { id, process, options }, invocation);
  if (collector === undefined || end === "detached") return;
  await invocation.output(options).result({
    json: {
      sandboxId: link.sandboxId,
      process: toProcessView(end),
      output: collector.text(),
      droppedBytes: collector.droppedBytes(),
      exitCode: processExitCode(end),
    },
    text: "",
  });
}
