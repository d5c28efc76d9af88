import { describe, expect, it } from "@jest/globals";
import { openRoom } from "../../fake/room.suite.ts";

describe("the tools of a sandbox", () => {
  it("come in the shapes that models take", async () => {
    using room = await openRoom();
    const schema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
    room.world.tools = [
      { name: "read_file", tier: 1, description: "Reads.", aliases: ["Read"], readOnly: true, inputSchema: schema },
      { name: "bash", tier: 2, description: "Runs." },
    ];
    const tools = await room.sandbox.tools();
    const none = { type: "object", properties: {}, additionalProperties: false };
    expect(tools.names).toEqual(["read_file", "bash"]);
    expect([...tools][0]).toMatchObject({ tier: 1, aliases: ["Read"], readOnly: true });
    expect(tools.anthropic()).toEqual([
      { name: "read_file", description: "Reads.", input_schema: schema },
      { name: "bash", description: "Runs.", input_schema: none },
    ]);
    expect(tools.openai()[0]).toEqual({
      type: "function",
      function: { name: "read_file", description: "Reads.", parameters: schema },
    });
    expect(tools.mcp().map(({ annotations }) => annotations.readOnlyHint)).toEqual([true, false]);
  });
});
