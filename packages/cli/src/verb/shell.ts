import type { Command } from "commander";
import { invalidArgument } from "@turnbox/core";
import type { Invocation } from "../invocation.ts";
import { collect, parsePairs, type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { attachProcess } from "../process/attach-process.ts";
import { killOnFailure } from "../process/kill-on-failure.ts";
import { terminalSize } from "../process/raw-terminal.ts";
import { tellEnd } from "../process/tell-end.ts";
import { writeTo } from "../surroundings.ts";

interface ShellOptions extends ServerOptions {
  readonly cwd?: string;
  readonly env?: readonly string[];
}

export function registerShell(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("shell <id> [command...]"))
      .usage("[options] <id> [-- command...]")
      .summary("work in a sandbox, in a terminal")
      .description(
        "Start a shell, or another program, on a terminal in the sandbox. Every key goes to it, Ctrl-C too, and its terminal " +
          "has the size of this one. Ctrl-] leaves it running, for `turnbox attach`. The exit code is the program's.",
      )
      .option("--cwd <path>", "where to start (default: /workspace)")
      .option("--env <key=value>", "a variable for it; may be given several times", collect),
    [
      ["turnbox shell web", "bash"],
      ["turnbox shell web -- python3 -q", "another program"],
    ],
  ).action(async (id: string, words: readonly string[], options: ShellOptions) => {
    const { signal, surroundings } = invocation;
    if (options.json === true) throw invalidArgument("json", "a terminal has no JSON; use `turnbox exec` or `run`");
    const [binary = "bash", ...args] = words;
    const env = { TERM: surroundings.environment.variables["TERM"] ?? "xterm", ...parsePairs(options.env, "env") };
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const process = await sandbox.shell({
      binary,
      args,
      env,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      size: terminalSize(surroundings.stdout),
      signal,
    });
    const onBytes = (bytes: Uint8Array): Promise<void> => writeTo(surroundings.stdout, bytes);
    // As when a terminal's window is closed.
    const end = await killOnFailure(process, "SIGHUP", () =>
      attachProcess({ process, from: 0, stdin: "forward", onBytes }, invocation),
    );
    await tellEnd(end, { id, process, options }, invocation);
  });
}
