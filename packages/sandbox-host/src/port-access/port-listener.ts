import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage, type Server as HttpServer } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createServer as createTlsServer } from "node:tls";
import { parseBearer, SandboxError } from "@turnbox/core";
import { join, type Joint } from "./join.ts";
import { passRequest, passUpgrade, sayBadGateway } from "./pass-request.ts";

/** The address at which a port of a session is reached from outside. */
export interface PortListener extends AsyncDisposable {
  readonly listenPort: number;
  /**
   * Ends connections that are no longer allowed: tunnels of a port that is not public any more, and upgraded connections whose
   * token has ended.
   */
  checkOpen(): void;
}

export interface ListenerOptions {
  /** The address that the host serves at. */
  readonly bindAddress: string;
  /** 0 means any free port. */
  readonly listenPort: number;
  readonly tls: { readonly certificate: Buffer; readonly privateKey: Buffer } | null;
  dial(): Promise<Duplex>;
  /** Whether connections need no token at this moment. Then bytes of any protocol are passed on as they are. */
  isPublic(): boolean;
  isToken(token: string): boolean;
  touch(): void;
  /** How long a connection without a token may be silent, or take for its headers. Default 15 s. */
  readonly silenceMs?: number;
}

const MAX_CONNECTIONS = 64;
const TOKEN_HEADER = "turnbox-port-token";
const SILENCE_MS = 15_000;
/** How often connections are checked for slow headers. */
const CHECK_MS = 5_000;

/**
 * Passes connections on to a port inside. If the policy makes the port public, of any protocol; otherwise HTTP requests with the
 * port's token, including upgrades to web sockets. The token itself is never passed on to the sandbox.
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
      // Ends the check of slow headers. It fails because this server is not listening, which is ignored.
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
      // A body has no time limit: only a request with the token has one.
      requestTimeout: 0,
      connectionsCheckingInterval: Math.min(CHECK_MS, silenceMs),
      // A request with a body is handled like others: its client may not need the other protocol.
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
  // The server gets its sockets from outside and never listens; this event starts its check of slow headers.
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

/** The status with which a request is refused; null if it is passed on. */
function refusal(options: ListenerOptions, { headers, url = "", method }: IncomingMessage): number | null {
  const header = headers[TOKEN_HEADER];
  const token = typeof header === "string" ? header : bearerOf(headers.authorization);
  if (!options.isPublic() && (token === undefined || !options.isToken(token))) return 401;
  // The listener is no proxy to other hosts, and does not let the server inside be used as one.
  return url.startsWith("/") || (method === "OPTIONS" && url === "*") ? null : 400;
}

function bearerOf(authorization: string | undefined): string | undefined {
  try {
    return parseBearer(authorization ?? null)?.reveal();
  } catch {
    return undefined;
  }
}

/** The headers that are not passed on: the token, and the authorization unless the token has a header of its own. */
function dropsOf({ headers }: IncomingMessage): (name: string) => boolean {
  const beside = headers[TOKEN_HEADER] !== undefined;
  return (name) => name === TOKEN_HEADER || (name === "authorization" && !beside);
}
