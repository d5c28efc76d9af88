import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { SandboxError, type Secret } from "@turnbox/client";
import { hasErrno } from "@turnbox/client/internal";
import { createGuard, MCP_PATH, type Refusal } from "./http-guard.ts";
import { createSessionTable, type SessionTable, type SessionTableOptions } from "./session-table.ts";

const MAX_CONNECTIONS = 256;
const HEADERS_MS = 10_000;
const RETRY_AFTER_S = 30;

export interface HttpSpec extends SessionTableOptions {
  /** A loopback address. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly token: Secret;
}

export interface McpListener extends AsyncDisposable {
  /** Where clients connect. */
  readonly url: string;
}

/** Serves sessions over streamable HTTP. Disposing ends all of them, and their sandboxes. */
export async function serveHttp(spec: HttpSpec): Promise<McpListener> {
  const server = createServer();
  server.maxConnections = MAX_CONNECTIONS;
  server.headersTimeout = HEADERS_MS;
  const port = await listen(server, spec);
  const sessions = createSessionTable(spec);
  const guard = createGuard({ hosts: namesOf(spec.host, port), token: spec.token });
  server.on("request", (request, response) => {
    const refusal = guard(request);
    if (refusal !== undefined) {
      refuse(response, refusal);
      return;
    }
    answer(request, response, sessions).catch((thrown: unknown) => {
      spec.onProblem(`a request failed: ${String(thrown)}`);
      if (response.headersSent) response.destroy();
      else refuse(response, { status: 500, message: "an unexpected failure" });
    });
  });
  return {
    url: `http://${bracketed(spec.host)}:${String(port)}${MCP_PATH}`,
    [Symbol.asyncDispose]: async () => {
      await sessions[Symbol.asyncDispose]();
      await close(server);
    },
  };
}

async function answer(request: IncomingMessage, response: ServerResponse, sessions: SessionTable): Promise<void> {
  const sessionId = request.headers["mcp-session-id"];
  if (typeof sessionId === "string") {
    const entry = sessions.get(sessionId);
    if (entry !== undefined) await entry.handle(request, response);
    else refuse(response, { status: 404, message: "there is no such session; initialize a new one", code: -32_001 });
    return;
  }
  if (request.method !== "POST") {
    refuse(response, { status: 400, message: "the header Mcp-Session-Id is missing" });
    return;
  }
  const entry = await sessions.begin();
  if (entry !== undefined) {
    await entry.handle(request, response);
    return;
  }
  refuse(response, {
    status: 503,
    message: "there are as many sessions as this server takes; end one, or try again later",
    headers: { "Retry-After": String(RETRY_AFTER_S) },
  });
}

function refuse(
  response: ServerResponse,
  { status, message, headers = {}, code = -32_000 }: Refusal & { readonly code?: number },
): void {
  // What is left of the request is not read.
  response.writeHead(status, { "Content-Type": "application/json", Connection: "close", ...headers });
  response.end(JSON.stringify({ jsonrpc: "2.0", error: { code, message }, id: null }));
}

async function listen(server: Server, { host, port }: Pick<HttpSpec, "host" | "port">): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => {
      const address = `${bracketed(host)}:${String(port)}`;
      reject(
        hasErrno(cause, "EADDRINUSE")
          ? new SandboxError("PORT_IN_USE", `another program listens on ${address}`, {
              cause,
              metadata: { remedy: "Choose another port with --port, or 0 for any that is free." },
            })
          : new SandboxError("INVALID_ARGUMENT", `cannot listen on ${address}: ${cause.message}`, { cause }),
      );
    });
    server.listen(port, host, resolve);
  });
  return (server.address() as AddressInfo).port;
}

async function close(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
    server.closeAllConnections();
  });
}

/** Every name by which a program on this machine calls a loopback address. */
function namesOf(host: string, port: number): ReadonlySet<string> {
  const names = [bracketed(host), "localhost", "127.0.0.1", "[::1]"];
  return new Set(names.flatMap((name) => [`${name.toLowerCase()}:${String(port)}`, ...(port === 80 ? [name] : [])]));
}

const bracketed = (host: string): string => (host.includes(":") ? `[${host}]` : host);
