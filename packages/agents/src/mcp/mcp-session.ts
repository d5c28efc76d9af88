import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { createMcpServer, type McpServerSpec } from "./mcp-server.ts";
import { createWorkspace, type WorkspaceOptions } from "./workspace.ts";

export interface McpSessionSpec
  extends Omit<McpServerSpec, "workspace" | "sessionId">,
    Pick<WorkspaceOptions, "open" | "atEnd" | "leaseMs"> {}

/** A session of the protocol with the sandboxes it works in. Disposing closes it and then ends them. */
export interface McpSession extends AsyncDisposable {
  readonly mcp: McpServer;
}

export function createMcpSession(spec: McpSessionSpec, sessionId: string): McpSession {
  const workspace = createWorkspace(spec);
  const mcp = createMcpServer({ ...spec, workspace, sessionId });
  return {
    mcp,
    [Symbol.asyncDispose]: async () => {
      await mcp.close();
      await workspace[Symbol.asyncDispose]();
    },
  };
}
