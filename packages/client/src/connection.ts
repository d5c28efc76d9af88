import type { Interceptor, Transport } from "@connectrpc/connect";
import { invalidArgument } from "@turnbox/core";
import { createHttp2Transport, ConnectionManager, type ConnectionTimes } from "@turnbox/rpc/client";
import { type Peer, withSandboxErrors } from "./sandbox-error-transport.ts";

/** Where a service is and what opens it. */
export interface Endpoint {
  /** `http://host:port` or `https://host:port`. */
  readonly url: string;
  /** Sent as `Authorization: Bearer`. */
  readonly token: string;
}

/** A transport and the HTTP/2 connection under it. Its owner closes it; calls in flight then fail. */
export interface Connection extends Disposable {
  readonly transport: Transport;
  readonly close: () => void;
}

/** Makes the connection to one peer. Injected if there is no network, in tests above all. */
export type ConnectionFactory = (endpoint: Endpoint, peer: Peer) => Connection;

/** Most bytes of one message from a service. */
const READ_MAX_BYTES = 64 * 1024 * 1024;
/** A connection without traffic is checked this often while calls are open, so that a vanished peer is noticed. */
const TIMES: ConnectionTimes = { connectTimeoutMs: 10_000, pingIntervalMs: 10_000, pingTimeoutMs: 5_000 };

/** Connects lazily, on the first call, over HTTP/2. */
export const createHttp2Connection: ConnectionFactory = (endpoint, peer) => openHttp2(endpoint, peer, []);

/** The same with something around each call, outermost first. */
export function createHttp2ConnectionWith(interceptors: readonly Interceptor[]): ConnectionFactory {
  return (endpoint, peer) => openHttp2(endpoint, peer, interceptors);
}

function openHttp2(endpoint: Endpoint, peer: Peer, interceptors: readonly Interceptor[]): Connection {
  const url = parseServiceUrl(endpoint.url);
  const connections = new ConnectionManager(url, TIMES);
  const transport = createHttp2Transport(connections, {
    interceptors: [...interceptors, createTokenInterceptor(endpoint.token)],
    readMaxBytes: READ_MAX_BYTES,
  });
  const close = (): void => {
    connections[Symbol.dispose]();
  };
  return { transport: withSandboxErrors(transport, { peer, url }), close, [Symbol.dispose]: close };
}

/** Sends the token with every call. */
export function createTokenInterceptor(token: string): Interceptor {
  return (next) => (request) => {
    request.header.set("Authorization", `Bearer ${token}`);
    return next(request);
  };
}

/** An http or https address without a path; the error names what is wrong. */
export function parseServiceUrl(raw: string): string {
  let url: URL;
  try {
    url = new URL(raw);
  } catch {
    throw invalidArgument("url", `${JSON.stringify(raw)} is not an address like http://127.0.0.1:7700`);
  }
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw invalidArgument("url", "must begin with http:// or https://");
  if (url.username !== "" || url.password !== "") throw invalidArgument("url", "must not carry a user or a password");
  return url.origin;
}
