import type { Command } from "commander";
import type { ToolDescription } from "@turnbox/client";
import { formatTable } from "../format/table.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { tableLook } from "../output.ts";
import { parametersOf } from "../tool-params.ts";

export function registerTools(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("tools <id>"))
      .summary("list the tools of a sandbox")
      .description(
        "List the tools that can be called in a sandbox. --json has their descriptions and JSON schemas whole.",
      ),
    [
      ["turnbox tools web", "names and parameters"],
      ["turnbox tools web --json", "the catalog, for a model"],
    ],
  ).action(async (id: string, options: ServerOptions) => {
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const tools = [...(await sandbox.tools({ signal }))];
    const output = invocation.output(options);
    await output.result({
      json: { sandboxId: sandbox.id, tools },
      text: formatTable(["TOOL", "CHANGES", "ALIASES", "PARAMETERS"], tools.map(toRow), {
        ...tableLook(output),
        lastCell: "cut",
      }),
    });
  });
}

/** Parameters that may be left out stand in brackets. */
function toRow(tool: ToolDescription): readonly string[] {
  const parameters = parametersOf(tool).map(({ name, isNeeded }) => (isNeeded ? name : `[${name}]`));
  return [tool.name, tool.readOnly ? "no" : "yes", tool.aliases.join(",") || "-", parameters.join(" ")];
}
