import type { Command } from "commander";
import type { ContentBlock, Sandbox, ToolDescription, ToolResult } from "@turnbox/client";
import { exitReasonWord } from "../exec-result.ts";
import { EXIT } from "../exit-code.ts";
import { formatSize } from "../format/size.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import type { Output } from "../output.ts";
import { printableText } from "../printable.ts";
import { parseParams } from "../tool-params.ts";

interface ToolOptions extends ServerOptions {
  readonly params?: string;
  readonly callId?: string;
}

export function registerTool(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("tool <id> <name> [params...]"))
      .summary("call a tool of a sandbox")
      .description(
        "Call any tool of `turnbox tools` and print its result. Parameters are words KEY=VALUE, a JSON object, or both. The same " +
          "--call-id is done once, however often it is asked for. The exit code is that of what ran, 1 where a tool without " +
          "one did not do what was asked.",
      )
      .option("--params <json>", "the parameters as a JSON object")
      .option("--call-id <id>", "names the call (default: a new one)"),
    [
      ["turnbox tool web read_file path=app.py", "a parameter"],
      [
        `turnbox tool web bash --params '{"cmd": "make", "timeout_ms": 60000}' --json`,
        "all of them, and an object back",
      ],
    ],
  ).action(async (id: string, name: string, words: readonly string[], options: ToolOptions) => {
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const tool = await findTool(sandbox, name, { signal });
    const params = parseParams({ json: options.params, words }, tool);
    const callId = options.callId === undefined ? {} : { toolCallId: options.callId };
    const result = await sandbox.tool(name, params, { ...callId, signal });
    const output = invocation.output(options);
    await output.result({ json: toView(sandbox.id, result), text: formatResult(result, output) });
    invocation.exitWith(result.exitCode ?? (result.isError ? EXIT.failed : EXIT.ok));
  });
}

/** Undefined if there is none; what it is asked to do then is refused by the host. */
async function findTool(
  sandbox: Sandbox,
  name: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<ToolDescription | undefined> {
  const tools = await sandbox.tools({ signal });
  return [...tools].find((tool) => tool.name === name || tool.aliases.includes(name));
}

function toView(sandboxId: string, result: ToolResult) {
  const { toolCallId, content, blocks, isError, exitCode, replayed, snapshotId } = result;
  return {
    sandboxId,
    toolCallId,
    content,
    blocks: blocks.map(toBlock),
    isError,
    exitCode: exitCode ?? null,
    reason: exitReasonWord(result),
    replayed,
    snapshotId: snapshotId ?? null,
  };
}

const toBlock = (block: ContentBlock): object =>
  block.type === "image" ? { ...block, data: Buffer.from(block.data).toString("base64") } : block;

/** On a terminal nothing of the result shall act upon it; elsewhere text is passed as it is. */
function formatResult({ content, blocks }: ToolResult, { to }: Output): string {
  const images = blocks.flatMap((block) =>
    block.type === "image" ? [`[${block.mediaType}, ${formatSize(block.data.length)}]\n`] : [],
  );
  const text = content === "" || content.endsWith("\n") ? content : `${content}\n`;
  return (to === "terminal" ? printableText(text) : text) + images.join("");
}
