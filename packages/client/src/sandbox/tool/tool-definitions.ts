/** A tool, as the host describes it. */
export interface ToolDescription {
  readonly name: string;
  readonly tier: number;
  readonly description: string;
  /** JSON schema of the parameters. */
  readonly inputSchema: JsonSchema;
  readonly aliases: readonly string[];
  readonly readOnly: boolean;
}

/** A JSON schema, as plain data. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The `tools` of Anthropic's messages. */
export interface AnthropicTool {
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonSchema;
}

/** The `tools` of OpenAI's chat completions. */
export interface OpenAiTool {
  readonly type: "function";
  readonly function: { readonly name: string; readonly description: string; readonly parameters: JsonSchema };
}

/** The tools of the Model Context Protocol. */
export interface McpTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly annotations: { readonly readOnlyHint: boolean };
}

/** A sandbox's tools in the shapes that models take. Iterates over the descriptions. */
export interface ToolDefinitions extends Iterable<ToolDescription> {
  readonly names: readonly string[];
  anthropic(): readonly AnthropicTool[];
  openai(): readonly OpenAiTool[];
  mcp(): readonly McpTool[];
}
