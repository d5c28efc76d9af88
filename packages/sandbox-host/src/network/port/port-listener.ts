import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { type Duplex, pipeline } from "node:stream";
import { createServer as createTlsServer } from "node:tls";
import { parseBearer, SandboxError } from "@turnbox/core";

/** Where a port of a session is reached from outside. */
export interface PortListener extends AsyncDisposable {
  readonly listenPort: number;
}

export interface ListenerOptions {
  /** The address that the host serves at. */
  readonly bindAddress: string;
  /** 0 takes any that is free. */
  readonly listenPort: number;
  readonly tls: { readonly certificate: Buffer; readonly privateKey: Buffer } | null;
  dial(): Promise<Duplex>;
  /** Whether anybody may connect at this moment; then whatever is spoken is passed on as it is. */
  isPublic(): boolean;
  isToken(token: string): boolean;
  touch(): void;
}

const MAX_CONNECTIONS = 64;
const TOKEN_HEADER = "turnbox-port-token";
/** How long a connection that has not shown a token may be silent. */
const SILENCE_MS = 15_000;

/**
 * Passes connections on to a port inside. Where the policy opens it to the public, any protocol; otherwise HTTP, each request
 * with the port's token, upgrades to web sockets included. The token itself never reaches the sandbox.
 */
export async function startPortListener(options: ListenerOptions): Promise<PortListener> {
  const http = createHttpServer((incoming, response) => {
    void forward(options, incoming, response);
  });
  http.on("upgrade", (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    void upgrade(options, incoming, { socket, head });
  });
  http.on("clientError", (_: Error, socket: Duplex) => {
    socket.destroy();
  });
  const sockets = new Set<Socket>();
  const accept = (socket: Socket): void => {
    socket.on("error", () => undefined);
    if (options.isPublic()) {
      void tunnel(options, socket);
      return;
    }
    socket.setTimeout(SILENCE_MS);
    socket.on("timeout", () => socket.destroy());
    http.emit("connection", socket);
  };
  const { tls } = options;
  const server: Server =
    tls === null ? createServer(accept) : createTlsServer({ cert: tls.certificate, key: tls.privateKey }, accept);
  server.maxConnections = MAX_CONNECTIONS;
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen({ host: options.bindAddress, port: options.listenPort });
  try {
    await once(server, "listening");
  } catch (cause) {
    throw new SandboxError("PORT_IN_USE", `the host cannot listen on port ${String(options.listenPort)}`, { cause });
  }
  server.on("error", () => undefined);
  return {
    listenPort: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function tunnel(options: ListenerOptions, socket: Socket): Promise<void> {
  options.touch();
  try {
    join(socket, await options.dial());
  } catch {
    socket.destroy();
  }
}

/** Why a request is not passed on; null where it is. */
function refusal(options: ListenerOptions, { headers, url = "", method }: IncomingMessage): number | null {
  const header = headers[TOKEN_HEADER];
  const token = typeof header === "string" ? header : bearerOf(headers.authorization);
  if (!options.isPublic() && (token === undefined || !options.isToken(token))) return 401;
  // Neither a proxy for other places nor a way to make one of the server inside.
  return url.startsWith("/") || (method === "OPTIONS" && url === "*") ? null : 400;
}

function bearerOf(authorization: string | undefined): string | undefined {
  try {
    return parseBearer(authorization ?? null)?.reveal();
  } catch {
    return undefined;
  }
}

/** The headers that go on: without the token, and with the caller's own authorization where the token was sent beside it. */
function headersOnward({ rawHeaders, headers }: IncomingMessage): string[] {
  const beside = headers[TOKEN_HEADER] !== undefined;
  const onward: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = "", value = ""] = rawHeaders.slice(index, index + 2);
    const lower = name.toLowerCase();
    if (lower === TOKEN_HEADER || (lower === "authorization" && !beside)) continue;
    onward.push(name, value);
  }
  return onward;
}

async function forward(options: ListenerOptions, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const refused = refusal(options, incoming);
  if (refused !== null) {
    response.writeHead(refused, { "content-type": "text/plain", connection: "close" });
    response.end(refused === 401 ? "a token of this port is needed\n" : "not a request for this port\n");
    return;
  }
  incoming.socket.setTimeout(0);
  options.touch();
  try {
    const inside = await options.dial();
    response.on("close", () => inside.destroy());
    const { method = "GET", url = "/" } = incoming;
    const onward = request({
      method,
      path: url,
      headers: headersOnward(incoming),
      setHost: false,
      createConnection: () => inside,
    });
    onward.on("error", () => {
      failed(response);
    });
    onward.on("response", (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.rawHeaders);
      pipeline(answer, response, () => undefined);
    });
    pipeline(incoming, onward, () => undefined);
  } catch {
    failed(response);
  }
}

function failed(response: ServerResponse): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.writeHead(502, { "content-type": "text/plain", connection: "close" });
  response.end("nothing answers on this port of the sandbox\n");
}

async function upgrade(
  options: ListenerOptions,
  incoming: IncomingMessage,
  { socket, head }: { readonly socket: Duplex; readonly head: Buffer },
): Promise<void> {
  socket.on("error", () => undefined);
  const refused = refusal(options, incoming);
  if (refused !== null) {
    socket.end(`HTTP/1.1 ${String(refused)} Refused\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
    return;
  }
  incoming.socket.setTimeout(0);
  options.touch();
  try {
    const inside = await options.dial();
    const lines = [`${incoming.method ?? "GET"} ${incoming.url ?? "/"} HTTP/1.1`];
    const headers = headersOnward(incoming);
    for (let index = 0; index < headers.length; index += 2) lines.push(`${headers[index]}: ${headers[index + 1]}`);
    inside.write(`${lines.join("\r\n")}\r\n\r\n`);
    inside.write(head);
    join(socket, inside);
  } catch {
    socket.destroy();
  }
}

/** Each end of one side goes on to the other; what breaks breaks both. */
function join(a: Duplex, b: Duplex): void {
  const end = (): void => {
    a.destroy();
    b.destroy();
  };
  pipeline(a, b, (err) => {
    if (err) end();
  });
  pipeline(b, a, end);
}
