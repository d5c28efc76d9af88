import type { Command } from "commander";
import type { LaunchOptions, Sandbox, SandboxProcess } from "@turnbox/client";
import { invalidArgument } from "@turnbox/core";
import { createCollector, parsePort } from "@turnbox/client/internal";
import type { Invocation } from "../invocation.ts";
import { collect, parsePairs, type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { attachProcess } from "../process/attach-process.ts";
import { killOnFailure } from "../process/kill-on-failure.ts";
import { processExitCode, toProcessView } from "../process/process-view.ts";
import { tellEnd } from "../process/tell-end.ts";
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
    const [binary = "", ...args] = words;
    const program = toLaunch(args, options);
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const process = await sandbox.processes.launch(binary, { ...program, signal });
    if (options.detach !== true) await follow({ id, sandbox, process, options }, invocation);
    else {
      await invocation.output(options).result({
        json: { sandboxId: sandbox.id, process: toProcessView(process.known) },
        text: `${process.id}\n`,
      });
    }
  });
}

function toLaunch(args: readonly string[], { port, env, cwd }: RunOptions): LaunchOptions {
  const exposePort = port === undefined ? undefined : parsePort(port, "port");
  if (exposePort === 0) throw invalidArgument("port", "must be from 1 to 65535");
  return {
    args,
    env: parsePairs(env, "env"),
    ...(cwd === undefined ? {} : { cwd }),
    ...(exposePort === undefined ? {} : { exposePort }),
  };
}

interface Run {
  readonly id: string;
  readonly sandbox: Sandbox;
  readonly process: SandboxProcess;
  readonly options: RunOptions;
}

async function follow({ id, sandbox, process, options }: Run, invocation: Invocation): Promise<void> {
  const { stdout } = invocation.surroundings;
  const collector = options.json === true ? createCollector(MAX_JSON_BYTES) : undefined;
  const onBytes = async (bytes: Uint8Array): Promise<void> => {
    if (collector === undefined) await writeTo(stdout, bytes);
    else collector.add(bytes);
  };
  const stdin = options.stdin ? "forward" : "none";
  const end = await killOnFailure(process, "SIGTERM", () =>
    attachProcess({ process, from: 0, stdin, onBytes }, invocation),
  );
  await tellEnd(end, { id, process, options }, invocation);
  if (collector === undefined || end === "detached") return;
  await invocation.output(options).result({
    json: {
      sandboxId: sandbox.id,
      process: toProcessView(end),
      output: collector.text(),
      droppedBytes: collector.droppedBytes(),
      exitCode: processExitCode(end),
    },
    text: "",
  });
}
