import type { Command } from "commander";
import type { Tool } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { CALL_MS } from "../deadline.ts";
import { formatTable } from "../format/table.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { tableLook } from "../output.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";
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
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    const { host, sessionId, sandboxId } = sandbox;
    const { tools } = await host.tools.listTools({ sessionId }, { signal: invocation.signal, timeoutMs: CALL_MS.read });
    const output = invocation.output(options);
    await output.result({
      json: { sandboxId, tools: tools.map(toView) },
      text: formatTable(["TOOL", "CHANGES", "ALIASES", "PARAMETERS"], tools.map(toRow), {
        ...tableLook(output),
        lastCell: "cut",
      }),
    });
  });
}

const toView = ({ name, tier, description, inputSchema, aliases, readOnly }: Tool) => ({
  name,
  tier,
  description,
  inputSchema: inputSchema ?? {},
  aliases,
  readOnly,
});

/** Parameters that may be left out stand in brackets. */
function toRow(tool: Tool): readonly string[] {
  const parameters = parametersOf(tool).map(({ name, needed }) => (needed === "yes" ? name : `[${name}]`));
  return [tool.name, tool.readOnly ? "no" : "yes", tool.aliases.join(",") || "-", parameters.join(" ")];
}
