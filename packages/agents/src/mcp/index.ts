/** The server of the Model Context Protocol, which the command line starts. */
export { type HttpSpec, type McpListener, serveHttp } from "./http/serve-http.ts";
export { createMcpSession, type McpSession, type McpSessionSpec } from "./mcp-session.ts";
export { type McpSandboxChoice, openForMcp } from "./open-sandbox.ts";
export { serveStdio, type StdioSpec } from "./serve-stdio.ts";
