import type { Command } from "commander";
import { invalidArgument } from "@turnbox/core";
import { formatSize } from "../format/size.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { printable } from "../printable.ts";
import { download } from "../transfer/download.ts";
import { parseCopyEnd } from "../transfer/copy-end.ts";
import { createProgressBar } from "../transfer/progress-bar.ts";
import { upload } from "../transfer/upload.ts";

export function registerCp(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("cp <source> <destination>"))
      .summary("copy files into a sandbox or out of it")
      .description(
        "Copy a file or a directory with all that is in it. One of both ends is ID:PATH, in a sandbox (relative paths begin at " +
          "/workspace); the id ends at the last colon before a slash. Where a directory is, the copy goes into it under its " +
          "own name. Links stay links. On a terminal, stderr shows how far it is.",
      ),
    [
      ["turnbox cp ./app web:/workspace/app", "a directory into a sandbox"],
      ["turnbox cp web:/workspace/report.pdf .", "a file out of it"],
      ["turnbox cp ./a:b web:notes/", "a name with a colon that is here"],
    ],
  ).action(async (from: string, to: string, options: ServerOptions) => {
    const [source, destination] = [parseCopyEnd(from), parseCopyEnd(to)];
    const remote = source.at === "sandbox" ? source : destination;
    if (source.at === destination.at || remote.at !== "sandbox")
      throw invalidArgument("destination", "exactly one of both ends must be in a sandbox, as ID:PATH");
    const { surroundings, signal } = invocation;
    const { clock, runner, stderr } = surroundings;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(remote.reference, { signal });
    const copied = await (async () => {
      using bar = createProgressBar({ stream: stderr, clock, show: options.json === true ? "never" : "on terminals" });
      const order = { sandbox, source: source.path, destination: destination.path, bar, runner };
      return await (source.at === "sandbox" ? download : upload)(order, { signal });
    })();
    const output = invocation.output(options);
    if (output.format === "json") await output.result({ json: { sandboxId: sandbox.id, ...copied }, text: "" });
    else
      await output.note(
        `copied ${printable(copied.source)} to ${printable(copied.destination)} (${formatSize(copied.bytes)})`,
      );
  });
}
