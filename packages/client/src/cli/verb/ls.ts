import type { Command } from "commander";
import { formatAge } from "../format/duration.ts";
import { formatSize } from "../format/size.ts";
import { formatTable } from "../format/table.ts";
import type { Invocation } from "../invocation.ts";
import { collect, parsePairs, type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { listSandboxes } from "../resolve/resolve-sandbox.ts";
import { type SandboxView, shortTemplate, toSandboxView } from "../sandbox-view.ts";

interface LsOptions extends ServerOptions {
  readonly label?: readonly string[];
}

export function registerLs(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("ls"))
      .summary("list sandboxes")
      .description("List your sandboxes.")
      .option("--label <key=value>", "only those with this label; may be given several times", collect),
    [
      ["turnbox ls", "all of them"],
      ["turnbox ls --label app=web", "those with a label"],
      ["turnbox ls --json", "as {sandboxes: [...]}"],
    ],
  ).action(async (options: LsOptions) => {
    const labels = parsePairs(options.label, "label");
    using server = await invocation.server(options);
    const list = await listSandboxes(server, { labels, signal: invocation.signal });
    const sandboxes = list.sandboxes.map(toSandboxView);
    const output = invocation.output(options);
    await output.result({
      json: { sandboxes, unreachableInstances: list.unreachableInstances },
      text: formatSandboxes(sandboxes, invocation.surroundings.clock.nowMs()),
    });
    if (list.unreachableInstances.length > 0) {
      await output.note(`not answering, their sandboxes may be missing: ${list.unreachableInstances.join(", ")}`);
    }
  });
}

export function formatSandboxes(sandboxes: readonly SandboxView[], nowMs: number): string {
  return formatTable(
    ["ID", "NAME", "STATE", "TEMPLATE", "TURNS", "SIZE", "AGE"],
    sandboxes.map((sandbox) => [
      sandbox.sandboxId,
      sandbox.name,
      sandbox.state,
      shortTemplate(sandbox.template),
      String(sandbox.turnCount),
      formatSize(sandbox.spaceUsedBytes),
      sandbox.createdAt === null ? "" : formatAge(nowMs - Date.parse(sandbox.createdAt)),
    ]),
  );
}
