import { once } from "node:events";
import { type AddressInfo, createServer as createNetServer, isIPv6, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import { hasErrno, SandboxError } from "@turnbox/core";
import { assertBindPolicy } from "./bind-policy.ts";
import { countCalls, type HttpHandler } from "./http-handler.ts";
import { type ConnectionTable, createConnectionTable } from "./connection-table.ts";
import { detectProtocol } from "./detect-protocol.ts";
import { createHttp1Side, type ProtocolSide } from "./http1-side.ts";
import { createHttp2Side } from "./http2-side.ts";
import { DEFAULT_LISTEN_LIMITS, type ListenLimits } from "./listen-limits.ts";

export interface TlsMaterial {
  /** PEM. */
  readonly certificate: string | Buffer;
  /** PEM. */
  readonly privateKey: string | Buffer;
  /** PEM. If given, callers must present a certificate that it signed. */
  readonly clientAuthority?: string | Buffer;
}

export interface ListenOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly handler: HttpHandler;
  readonly tls?: TlsMaterial;
  /** Whether callers hold signed tokens; needed, with TLS, for any address but loopback. */
  readonly keys: "present" | "absent";
  readonly limits?: Partial<ListenLimits>;
  /** How long disposal waits for calls in flight. Default 5 s. */
  readonly drainMs?: number;
}

/** A server that listens. Disposing it closes it with the drain time it was made with. */
export interface ListeningServer extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** `http://host:port`, or https with TLS. */
  readonly url: string;
  /** Connections that are open. */
  readonly connections: number;
  /**
   * Stops accepting, closes connections that have asked for nothing, tells HTTP/2 peers to go away, lets calls in flight
   * end for `drainMs`, then cuts what is left. Without a call in flight it takes a fraction of a second, whatever the peers
   * do. Calling it again joins the close that is under way.
   */
  close(options?: { readonly drainMs?: number }): Promise<void>;
}

const DEFAULT_DRAIN_MS = 5000;
const DRAIN_POLL_MS = 20;
/** How long peers have to close their ends after the last answer. */
const FAREWELL_MS = 200;

/**
 * Serves HTTP/1.1 and HTTP/2 on one port. Without TLS the first bytes of a connection decide, with TLS its ALPN. Throws
 * `CONFIG_INVALID` for an address that is not loopback without TLS and keys, and `PORT_IN_USE` if the port is taken.
 */
export async function listen(options: ListenOptions): Promise<ListeningServer> {
  const { host, port, tls, keys, drainMs: ownDrainMs = DEFAULT_DRAIN_MS } = options;
  assertBindPolicy({ host, tls: tls === undefined ? "off" : "on", keys });
  const limits: ListenLimits = { ...DEFAULT_LISTEN_LIMITS, ...options.limits };
  const table = createConnectionTable(limits);
  const calls = countCalls(options.handler);
  const side = { handler: calls.handler, limits, prove: table.prove };
  const http1 = createHttp1Side(side);
  const http2 = createHttp2Side(side);
  const sides = { http1, http2, table, limits };
  const server = tls === undefined ? createPlainServer(sides) : createSecureServer(tls, sides);
  const sockets = trackSockets(server);
  try {
    await startListening(server, { host, port });
  } catch (cause) {
    http1.dispose();
    throw cause;
  }

  const close = async (drainMs: number): Promise<void> => {
    server.close(() => undefined);
    table.destroyUnproven();
    options.handler.drain?.();
    http1.drain();
    http2.drain();
    const deadlineMs = performance.now() + drainMs;
    await pollUntil(() => calls.inFlight === 0, deadlineMs);
    await pollUntil(() => table.size === 0, Math.min(deadlineMs, performance.now() + FAREWELL_MS));
    http1.dispose();
    http2.dispose();
    table.destroyAll();
    for (const socket of sockets) socket.destroy();
  };
  let closing: Promise<void> | undefined;
  const closeOnce = async ({ drainMs = ownDrainMs }: { readonly drainMs?: number } = {}): Promise<void> => {
    closing ??= close(drainMs);
    await closing;
  };

  const bound = (server.address() as AddressInfo).port;
  return {
    host,
    port: bound,
    url: `${tls === undefined ? "http" : "https"}://${isIPv6(host) ? `[${host}]` : host}:${bound}`,
    get connections() {
      return table.size;
    },
    close: closeOnce,
    [Symbol.asyncDispose]: async () => {
      await closeOnce();
    },
  };
}

async function pollUntil(holds: () => boolean, deadlineMs: number): Promise<void> {
  while (!holds() && performance.now() < deadlineMs) {
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
  }
}

/** All that is open, also what is in the middle of a TLS handshake and in no table yet. */
function trackSockets(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
    });
  });
  return sockets;
}

interface Sides {
  readonly http1: ProtocolSide;
  readonly http2: ProtocolSide;
  readonly table: ConnectionTable;
  readonly limits: ListenLimits;
}

function createPlainServer({ http1, http2, table, limits }: Sides): Server {
  return createNetServer({ noDelay: true, keepAlive: true }, (socket) => {
    // A peer that resets its connection is no event of ours.
    socket.on("error", () => undefined);
    if (!table.add(socket)) return;
    detectProtocol(socket, limits.firstBytesMs)
      .then((version) => {
        if (version === "http2") http2.accept(socket);
        else if (version === "http1") http1.accept(socket);
      })
      // What cannot be served is closed; the peer sees it.
      .catch(() => socket.destroy());
  });
}

function createSecureServer(tls: TlsMaterial, { http1, http2, table, limits }: Sides): Server {
  const server = createTlsServer({
    cert: tls.certificate,
    key: tls.privateKey,
    minVersion: "TLSv1.2",
    ALPNProtocols: ["h2", "http/1.1"],
    handshakeTimeout: limits.firstBytesMs,
    noDelay: true,
    keepAlive: true,
    ...(tls.clientAuthority === undefined
      ? {}
      : { ca: tls.clientAuthority, requestCert: true, rejectUnauthorized: true }),
  });
  // Connections that never finish their handshake are not in the table yet.
  server.maxConnections = limits.maxConnections;
  server.on("secureConnection", (socket: TLSSocket) => {
    socket.on("error", () => undefined);
    if (!table.add(socket)) return;
    if (socket.alpnProtocol === "h2") http2.accept(socket);
    else http1.accept(socket);
  });
  // A handshake that fails is the peer's affair.
  server.on("tlsClientError", () => undefined);
  return server;
}

async function startListening(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<void> {
  server.listen({ host, port, exclusive: true });
  try {
    await once(server, "listening");
  } catch (cause) {
    if (!hasErrno(cause, "EADDRINUSE", "EACCES", "EADDRNOTAVAIL")) throw cause;
    const taken = hasErrno(cause, "EADDRINUSE");
    throw new SandboxError(
      taken ? "PORT_IN_USE" : "CONFIG_INVALID",
      taken ? `${host}:${port} is in use by another program` : `${host}:${port} cannot be bound here`,
      { cause, metadata: { host, port: String(port) } },
    );
  }
  // A failure to accept one connection (no descriptor left) does not end the service.
  server.on("error", () => undefined);
}
