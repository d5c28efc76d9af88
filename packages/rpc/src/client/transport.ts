import type { Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { ConnectionManager } from "./connection-manager.ts";
import { createUnaryCalls } from "./unary-calls.ts";

export interface Http2TransportOptions {
  /** Around every call, outermost first. */
  readonly interceptors: readonly Interceptor[];
  /** Most bytes of one message from the service. */
  readonly readMaxBytes: number;
}

/**
 * Connect's transport over the connections to one service, with unary calls of its own. Nothing is compressed: most services
 * are on this machine, where compression costs more than it saves, and tool output would wait for it.
 */
export function createHttp2Transport(connections: ConnectionManager, options: Http2TransportOptions): Transport {
  const { stream } = createConnectTransport({
    baseUrl: connections.authority,
    httpVersion: "2",
    sessionManager: connections,
    interceptors: [refuseAborted, ...options.interceptors],
    readMaxBytes: options.readMaxBytes,
    acceptCompression: [],
  });
  return { unary: createUnaryCalls(connections, options), stream };
}

/** A call whose signal has aborted before is not sent. Connect sends it, and resets it afterwards. */
const refuseAborted: Interceptor = (next) => async (request) => {
  request.signal.throwIfAborted();
  return await next(request);
};
