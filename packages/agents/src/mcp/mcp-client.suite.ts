import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";

/** The official client, as tests use it. Disposing ends the session, and over stdio the program. */
export interface McpTestClient extends AsyncDisposable {
  readonly client: Client;
  call(name: string, params?: Readonly<Record<string, unknown>>): Promise<CallToolResult>;
}

export interface StdioProgram {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Starts the program and speaks with it on its stdin and stdout. */
export async function openStdioClient({ command, args, env }: StdioProgram): Promise<McpTestClient> {
  const variables = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    env: Object.fromEntries(variables),
    stderr: "inherit",
  });
  return await open(transport, () => Promise.resolve());
}

export async function openHttpClient(url: string, token: string): Promise<McpTestClient> {
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { Authorization: `Bearer ${token}` } },
  });
  return await open(transport, () => transport.terminateSession());
}

async function open(transport: Transport, farewell: () => Promise<void>): Promise<McpTestClient> {
  const client = new Client({ name: "turnbox-test", version: "0" });
  await client.connect(transport);
  return {
    client,
    call: async (name, params = {}) => (await client.callTool({ name, arguments: { ...params } })) as CallToolResult,
    [Symbol.asyncDispose]: async () => {
      await farewell();
      await client.close();
    },
  };
}

/** A result as text; other blocks by their type. */
export const textOf = ({ content }: CallToolResult): string =>
  content.map((block) => (block.type === "text" ? block.text : `<${block.type}>`)).join("\n");
