import type { Command } from "commander";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { attachProcess } from "../process/attach-process.ts";
import { createOutputLines } from "../process/output-lines.ts";
import { PROCESS_RULE, resolveProcess } from "../process/resolve-process.ts";
import { tellEnd } from "../process/tell-end.ts";
import { writeTo } from "../surroundings.ts";
import { parseOffset } from "./logs.ts";

interface AttachOptions extends ServerOptions {
  readonly from?: string;
  readonly stdin: boolean;
}

export function registerAttach(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("attach <id> <proc>"))
      .summary("be the input and output of a process")
      .description(
        "Show a process's output as it comes and pass input to it. One on a terminal gets every key, and Ctrl-] leaves it; " +
          "any other one gets lines, the end of stdin is the end of its input, and Ctrl-C leaves it. It goes on when it is " +
          `left. The exit code is the process's. ${PROCESS_RULE}`,
      )
      .option("--from <offset>", "show the output from this byte on (default: what comes from now on)")
      .option("--no-stdin", "do not pass input"),
    [
      ["turnbox attach web 3f", "from now on"],
      ["turnbox attach web 3f --from 0 --no-stdin", "everything, for reading"],
      ["echo 2+2 | turnbox attach web 3f --json", "an object on each line"],
    ],
  ).action(async (id: string, proc: string, options: AttachOptions) => {
    const asked = options.from === undefined ? undefined : parseOffset(options.from);
    const { signal, surroundings } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const process = await resolveProcess(sandbox, proc, { signal });
    const from = asked ?? process.known.outputBytes;
    if (options.json === true) {
      const lines = createOutputLines(invocation.output(options), { sandboxId: sandbox.id, offset: from });
      // Keys of a terminal are for people, and so is what answers them.
      const stdin = options.stdin && surroundings.stdin.isTTY !== true ? "forward" : "none";
      const attachment = { process, from, stdin, onBytes: lines.bytes, onDropped: lines.dropped } as const;
      const end = await attachProcess(attachment, invocation);
      await lines.end(end);
      await tellEnd(end, { id, process, options }, invocation);
      return;
    }
    const onBytes = (bytes: Uint8Array): Promise<void> => writeTo(surroundings.stdout, bytes);
    const stdin = options.stdin ? "forward" : "none";
    const end = await attachProcess({ process, from, stdin, onBytes }, invocation);
    await tellEnd(end, { id, process, options }, invocation);
  });
}
