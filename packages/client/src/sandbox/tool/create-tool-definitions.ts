import type { Tool } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import type { JsonSchema, ToolDefinitions, ToolDescription } from "./tool-definitions.ts";

export function createToolDefinitions(tools: readonly Tool[]): ToolDefinitions {
  const descriptions = tools.map(toDescription);
  return {
    names: descriptions.map(({ name }) => name),
    [Symbol.iterator]: () => descriptions[Symbol.iterator](),
    anthropic: () =>
      descriptions.map(({ name, description, inputSchema }) => ({ name, description, input_schema: inputSchema })),
    openai: () =>
      descriptions.map(({ name, description, inputSchema }) => ({
        type: "function",
        function: { name, description, parameters: inputSchema },
      })),
    mcp: () =>
      descriptions.map(({ name, description, inputSchema, readOnly }) => ({
        name,
        description,
        inputSchema,
        annotations: { readOnlyHint: readOnly },
      })),
  };
}

/** A schema without any word is the one of a tool without parameters. */
const NO_PARAMETERS: JsonSchema = { type: "object", properties: {}, additionalProperties: false };

const toDescription = ({ name, tier, description, inputSchema, aliases, readOnly }: Tool): ToolDescription => ({
  name,
  tier,
  description,
  inputSchema: inputSchema ?? NO_PARAMETERS,
  aliases: [...aliases],
  readOnly,
});
