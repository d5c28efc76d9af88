import type { Interceptor, Transport } from "@connectrpc/connect";
import type { Clock } from "@turnbox/core";
import { createHttp2Transport, ConnectionManager, type ConnectionTimes } from "@turnbox/rpc/client";

/** One HTTP/2 connection to a host at a time. */
export interface HostTransport extends Disposable {
  readonly transport: Transport;
  /** Whether the next call goes over the connection that the last one used. */
  connection(): "kept" | "new";
}

export interface HostTransportOptions {
  /** Around every call, outermost first. */
  readonly interceptors?: readonly Interceptor[];
  readonly times?: ConnectionTimes;
  readonly clock?: Clock;
}

/** Of one answer; hosts bound what they answer by themselves. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** The last two are less than any deadline of a call, so that a call on a dead connection has time left for another one. */
export const HOST_TRANSPORT_TIMES: ConnectionTimes = {
  connectTimeoutMs: 5000,
  pingIntervalMs: 5000,
  pingTimeoutMs: 3000,
};

/**
 * It takes the place of Connect's own session manager, which can drop a connection that is being made while it still
 * fails: the error of that one has no listener then, and ends the process.
 */
export function createHostTransport(url: string, options: HostTransportOptions = {}): HostTransport {
  const connections = new ConnectionManager(url, options.times ?? HOST_TRANSPORT_TIMES, options.clock);
  return {
    transport: createHttp2Transport(connections, {
      interceptors: options.interceptors ?? [],
      readMaxBytes: MAX_ANSWER_BYTES,
    }),
    connection: () => connections.connection(),
    [Symbol.dispose]: () => {
      connections[Symbol.dispose]();
    },
  };
}
