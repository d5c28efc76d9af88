import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import type { HttpHandler } from "./http-handler.ts";
import type { ListenLimits } from "./listen-limits.ts";

/** One protocol of a listening server: takes connections from it, and lets go of them. */
export interface ProtocolSide {
  accept(socket: Socket): void;
  /** Takes no further request on its connections and closes each when it has nothing left to do. */
  drain(): void;
  /** Stops its timers. Its connections are closed by whoever owns them. */
  dispose(): void;
}

const DRAIN_POLL_MS = 50;

export interface SideOptions {
  readonly handler: HttpHandler;
  readonly limits: ListenLimits;
  /** Told of every connection on which a request has arrived. */
  readonly prove: (socket: Socket) => void;
}

export function createHttp1Side({ handler, limits, prove }: SideOptions): ProtocolSide {
  let draining: NodeJS.Timeout | undefined;
  const server: Server = createServer(
    {
      headersTimeout: limits.headersMs,
      // A streamed body may take as long as it likes; the handler limits those that may not.
      requestTimeout: 0,
      keepAliveTimeout: limits.keepAliveMs,
      maxHeaderSize: limits.maxHeaderBytes,
      connectionsCheckingInterval: Math.min(1000, limits.headersMs),
    },
    (request, response) => {
      prove(request.socket);
      if (draining !== undefined) response.setHeader("connection", "close");
      handler(request, response);
    },
  );
  server.maxHeadersCount = limits.maxHeaderPairs;
  // The server gets its sockets from outside and never listens; this is what starts its check of slow headers.
  server.emit("listening");

  return {
    accept: (socket) => {
      server.emit("connection", socket);
      socket.resume();
    },
    drain: () => {
      server.closeIdleConnections();
      draining ??= setInterval(() => {
        server.closeIdleConnections();
      }, DRAIN_POLL_MS).unref();
    },
    dispose: () => {
      clearInterval(draining);
      server.closeAllConnections();
      // Ends the check of slow headers; that the server is not listening is known.
      server.close(() => undefined);
    },
  };
}
