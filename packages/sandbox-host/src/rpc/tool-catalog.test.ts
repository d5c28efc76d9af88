import { describe, expect, it } from "@jest/globals";
import type { Client } from "@connectrpc/connect";
import { fromConnectError } from "@turnbox/rpc/wire";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { startTestHost, type TestHost } from "../compose.suite.ts";
import { accessTo } from "./client.suite.ts";

const toolsOf = ({ host }: TestHost): Client<typeof ToolService> => accessTo(host).client(ToolService);

describe("the catalog over RPC", () => {
  it("lists what every tool takes, and which ones only read", async () => {
    await using test = await startTestHost();
    const { tools } = await toolsOf(test).listTools({});
    const read = tools.find(({ name }) => name === "read_file");
    expect(read).toMatchObject({ tier: 1, readOnly: true, aliases: ["Read", "read"] });
    expect(read?.inputSchema).toMatchObject({
      type: "object",
      required: ["path"],
      additionalProperties: false,
      properties: { offset: { type: "integer", minimum: 1, default: 1 } },
    });
    expect(tools.find(({ name }) => name === "git_status")).toMatchObject({ tier: 2, readOnly: false });
  });

  it("streams exactly one response for a file tool, with its blocks", async () => {
    await using test = await startTestHost();
    await test.create({ sessionId: "s" });
    const tools = toolsOf(test);
    const call = (toolCallId: string, toolName: string, params: Record<string, string>) => ({
      call: { sessionId: "s", toolCallId, toolName, params },
    });
    const events = [];
    for await (const { event } of tools.executeToolStream(call("w", "Write", { path: "a.gif", content: "GIF89a" })))
      events.push(event);
    for await (const { event } of tools.executeToolStream(call("r", "Read", { path: "a.gif" }))) events.push(event);
    expect(events).toMatchObject([
      { case: "response", value: { content: "Created a.gif (6 bytes).", tier: 1 } },
      {
        case: "response",
        value: {
          content: "a.gif: image/gif, 6 bytes",
          blocks: [
            { block: { case: "text", value: { text: "a.gif: image/gif, 6 bytes" } } },
            {
              block: { case: "image", value: { mediaType: "image/gif", data: new Uint8Array(Buffer.from("GIF89a")) } },
            },
          ],
        },
      },
    ]);
  });

  it("refuses what is not in it before anything happens, naming it", async () => {
    await using test = await startTestHost();
    await test.create({ sessionId: "s" });
    const tools = toolsOf(test);
    const reason = (toolName: string, params: Record<string, string>): Promise<string> =>
      tools.executeTool({ sessionId: "s", toolCallId: "c", toolName, params }).then(
        () => "none",
        (thrown: unknown) => `${fromConnectError(thrown).reason} ${fromConnectError(thrown).message}`,
      );
    expect(await reason("rm_rf", {})).toContain("TOOL_NOT_FOUND");
    expect(await reason("write_file", { path: "a" })).toContain("INVALID_ARGUMENT params.content: is required");
    expect(await reason("read_file", { file_path: "a" })).toContain("params.path: is required");
  });
});
