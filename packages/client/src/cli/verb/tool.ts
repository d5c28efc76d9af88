import { randomUUID } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { type ContentBlock, type ExecuteToolResponse, type Tool } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { CALL_MS } from "../deadline.ts";
import { exitReasonWord } from "../exec-result.ts";
import { EXIT } from "../exit-code.ts";
import { formatSize } from "../format/size.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import type { Output } from "../output.ts";
import { printableText } from "../printable.ts";
import { openLink, type SandboxLink } from "../resolve/sandbox-link.ts";
import { parseParams } from "../tool-params.ts";

const CANCEL_MS = 5000;

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
    const { signal, surroundings } = invocation;
    using server = await invocation.server(options);
    using link = await openLink({ server, reference: id, clock: surroundings.clock, signal }, invocation);
    const tool = await findTool(link, name, { signal });
    const params = parseParams({ json: options.params, words }, tool);
    const response = await call(link, { toolCallId: options.callId ?? randomUUID(), name, params }, { signal });
    const output = invocation.output(options);
    await output.result({ json: toView(link.sandboxId, response), text: formatResponse(response, output) });
    invocation.exitWith(response.exitCode ?? (response.isError ? EXIT.failed : EXIT.ok));
  });
}

/** Undefined where there is none; what it is asked to do then is refused by the host. */
async function findTool(
  link: SandboxLink,
  name: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<Tool | undefined> {
  const { tools } = await link.use(({ host, sessionId }) =>
    host.tools.listTools({ sessionId }, { signal, timeoutMs: CALL_MS.read }),
  );
  return tools.find((tool) => tool.name === name || tool.aliases.includes(name));
}

interface Call {
  readonly toolCallId: string;
  readonly name: string;
  readonly params: JsonObject;
}

/** The call's id makes it one call, also where the answer has to be asked for again. Ctrl-C takes it back. */
async function call(
  link: SandboxLink,
  { toolCallId, name, params }: Call,
  { signal }: { readonly signal: AbortSignal },
): Promise<ExecuteToolResponse> {
  try {
    return await link.use(({ host, sessionId }) =>
      host.tools.executeTool({ sessionId, toolCallId, toolName: name, params }, { signal }),
    );
  } finally {
    if (signal.aborted) {
      await link
        .use(({ host, sessionId }) => host.tools.cancelToolCall({ sessionId, toolCallId }, { timeoutMs: CANCEL_MS }))
        .catch(() => undefined);
    }
  }
}

function toView(sandboxId: string, response: ExecuteToolResponse) {
  const { toolCallId, content, blocks, isError, exitCode, replayed, snapshotId } = response;
  return {
    sandboxId,
    toolCallId,
    content,
    blocks: blocks.length === 0 ? [{ type: "text", text: content }] : blocks.map(toBlock),
    isError,
    exitCode: exitCode ?? null,
    reason: exitReasonWord(response),
    replayed,
    snapshotId: snapshotId === "" ? null : snapshotId,
  };
}

function toBlock({ block }: ContentBlock): object {
  if (block.case === "image")
    return { type: "image", mediaType: block.value.mediaType, data: Buffer.from(block.value.data).toString("base64") };
  return { type: "text", text: block.value?.text ?? "" };
}

/** On a terminal nothing of the result shall act upon it; elsewhere text is passed as it is. */
function formatResponse({ content, blocks }: ExecuteToolResponse, { to }: Output): string {
  const images = blocks.flatMap(({ block }) =>
    block.case === "image" ? [`[${block.value.mediaType}, ${formatSize(block.value.data.length)}]\n`] : [],
  );
  const text = content === "" || content.endsWith("\n") ? content : `${content}\n`;
  return (to === "terminal" ? printableText(text) : text) + images.join("");
}
