import type { Command } from "commander";
import { formatSandboxes } from "../format/sandbox-table.ts";
import type { Invocation } from "../invocation.ts";
import { collect, parsePairs, type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { tableLook } from "../output.ts";
import { toSandboxView } from "../sandbox-view.ts";
import { showWatch } from "../watch/show-watch.ts";

interface LsOptions extends ServerOptions {
  readonly label?: readonly string[];
  readonly watch?: boolean;
}

export function registerLs(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("ls"))
      .summary("list sandboxes")
      .description("List your sandboxes.")
      .option("--label <key=value>", "only those with this label; may be given several times", collect)
      .option("--watch", "go on until Ctrl-C: a table that stays true; where stdout is no terminal, a line per event"),
    [
      ["turnbox ls", "all of them"],
      ["turnbox ls --label app=web", "those with a label"],
      ["turnbox ls --watch", "and what becomes of them"],
      ["turnbox ls --json", "as {sandboxes: [...]}"],
    ],
  ).action(async (options: LsOptions) => {
    const labels = parsePairs(options.label, "label");
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const output = invocation.output(options);
    if (options.watch === true) {
      await showWatch({ turnbox, labels, output }, invocation);
      return;
    }
    const list = await turnbox.list({ labels, signal });
    const sandboxes = list.sandboxes.map(toSandboxView);
    await output.result({
      json: { sandboxes, unreachableInstances: list.unreachableInstances },
      text: formatSandboxes(sandboxes, invocation.surroundings.clock.nowMs(), tableLook(output)),
    });
    if (list.unreachableInstances.length > 0) {
      await output.note(`not answering, their sandboxes may be missing: ${list.unreachableInstances.join(", ")}`);
    }
  });
}
