import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage, type Server as HttpServer } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createServer as createTlsServer } from "node:tls";
import { parseBearer, SandboxError } from "@turnbox/core";
import { join, type Joint } from "./join.ts";
import { passRequest, passUpgrade, sayBadGateway } from "./pass-request.ts";

/** Where a port of a session is reached from outside. */
export interface PortListener extends AsyncDisposable {
  readonly listenPort: number;
  /** Ends the connections that what has changed since does not allow: tunnels of a port that is not public any more, and
   * upgraded ones whose token has ended. */
  checkOpen(): void;
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
  /** How long a connection that has not shown a token may be silent, or take for its headers. */
  readonly silenceMs?: number;
}

const MAX_CONNECTIONS = 64;
const TOKEN_HEADER = "turnbox-port-token";
const SILENCE_MS = 15_000;
/** How often slow headers are looked for. */
const CHECK_MS = 5_000;

/**
 * Passes connections on to a port inside. If the policy opens it to the public, any protocol; otherwise HTTP, each request
 * with the port's token, upgrades to web sockets included. The token itself never reaches the sandbox.
 */
export async function startPortListener(options: ListenerOptions): Promise<PortListener> {
  const { tls } = options;
  const joints = new Set<Joint>();
  const sockets = new Set<Socket>();
  const http = createHttpSide(options, joints);
  const accept = (socket: Socket): void => {
    if (tls !== null) socket.on("error", () => undefined);
    if (options.isPublic()) {
      tunnel(options, socket, joints).catch(() => socket.destroy());
      return;
    }
    socket.setTimeout(options.silenceMs ?? SILENCE_MS);
    socket.on("timeout", () => socket.destroy());
    http.emit("connection", socket);
  };
  const server: Server =
    tls === null
      ? createServer(accept)
      : createTlsServer({ cert: tls.certificate, key: tls.privateKey, handshakeTimeout: SILENCE_MS }, accept);
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
    http.close(() => undefined);
    throw new SandboxError("PORT_IN_USE", `the host cannot listen on port ${String(options.listenPort)}`, { cause });
  }
  server.on("error", () => undefined);
  return {
    listenPort: (server.address() as AddressInfo).port,
    checkOpen: () => {
      for (const joint of joints) joint.check();
    },
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      // Ends the check of slow headers; that this one is not listening is known.
      http.close(() => undefined);
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function createHttpSide(options: ListenerOptions, joints: Set<Joint>): HttpServer {
  const silenceMs = options.silenceMs ?? SILENCE_MS;
  const passed = (incoming: IncomingMessage) => {
    incoming.socket.setTimeout(0);
    options.touch();
    return { incoming, dial: options.dial, isDropped: dropsOf(incoming) };
  };
  const http = createHttpServer(
    {
      headersTimeout: silenceMs,
      // A body may take as long as it likes: only a request with the token has one.
      requestTimeout: 0,
      connectionsCheckingInterval: Math.min(CHECK_MS, silenceMs),
      // What has a body is a request like others: its client may not need the other protocol.
      shouldUpgradeCallback: ({ method, headers }) =>
        method === "GET" && headers["content-length"] === undefined && headers["transfer-encoding"] === undefined,
    },
    (incoming, response) => {
      const refused = refusal(options, incoming);
      if (refused !== null) {
        response.writeHead(refused, { "content-type": "text/plain", connection: "close" });
        response.end(refused === 401 ? "a token of this port is needed\n" : "not a request for this port\n");
        return;
      }
      passRequest({ ...passed(incoming), response }).catch(() => {
        sayBadGateway(response);
      });
    },
  );
  http.on("upgrade", (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    const refused = refusal(options, incoming);
    if (refused !== null) {
      socket.end(`HTTP/1.1 ${String(refused)} Refused\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const isOpen = (): boolean => refusal(options, incoming) === null;
    const onJoined = (joint: Joint): void => {
      keep(joints, joint, socket);
    };
    passUpgrade({ ...passed(incoming), socket, head, isOpen, onJoined }).catch(() => socket.destroy());
  });
  http.on("clientError", (_: Error, socket: Duplex) => {
    socket.destroy();
  });
  // The server gets its sockets from outside and never listens; this is what starts its check of slow headers.
  http.emit("listening");
  return http;
}

async function tunnel(options: ListenerOptions, socket: Socket, joints: Set<Joint>): Promise<void> {
  options.touch();
  const inside = await options.dial();
  keep(joints, join(socket, inside, options.isPublic), socket);
}

function keep(joints: Set<Joint>, joint: Joint, socket: Duplex): void {
  if (socket.closed) return;
  joints.add(joint);
  socket.on("close", () => joints.delete(joint));
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

/** What stays here: the token, and the authorization unless the token was sent beside it. */
function dropsOf({ headers }: IncomingMessage): (name: string) => boolean {
  const beside = headers[TOKEN_HEADER] !== undefined;
  return (name) => name === TOKEN_HEADER || (name === "authorization" && !beside);
}
