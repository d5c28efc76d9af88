import { createServer, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { HttpHandler } from "./http-handler.ts";
import type { ListenLimits } from "./listen-limits.ts";

/** One protocol of a listening server: takes connections from it, and lets go of them. */
export interface ProtocolSide {
  accept(socket: Socket): void;
  /** Closes each of its connections as soon as no call is under way on it; begun requests do not count. */
  drain(): void;
  /** Stops its timers. Its connections are closed by their owner. */
  dispose(): void;
}

export interface SideOptions {
  readonly handler: HttpHandler;
  readonly limits: ListenLimits;
  /** Told of every connection on which a request has arrived. */
  readonly prove: (socket: Socket) => void;
}

export function createHttp1Side({ handler, limits, prove }: SideOptions): ProtocolSide {
  /** How many calls are under way on each connection. */
  const calls = new Map<Socket, number>();
  let draining = false;
  const begin = (socket: Socket, response: ServerResponse): void => {
    calls.set(socket, (calls.get(socket) ?? 0) + 1);
    response.once("close", () => {
      const left = (calls.get(socket) ?? 1) - 1;
      if (calls.has(socket)) calls.set(socket, left);
      if (draining && left === 0) socket.destroySoon();
    });
  };
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
      begin(request.socket, response);
      if (draining) response.setHeader("connection", "close");
      handler(request, response);
    },
  );
  server.maxHeadersCount = limits.maxHeaderPairs;
  // The server gets its sockets from outside and never listens; this is what starts its check of slow headers.
  server.emit("listening");

  return {
    accept: (socket) => {
      calls.set(socket, 0);
      socket.once("close", () => {
        calls.delete(socket);
      });
      server.emit("connection", socket);
      socket.resume();
    },
    drain: () => {
      draining = true;
      for (const [socket, count] of calls) {
        if (count === 0) socket.destroySoon();
      }
    },
    dispose: () => {
      server.closeAllConnections();
      // Ends the check of slow headers; that the server is not listening is known.
      server.close(() => undefined);
    },
  };
}
