import {
  Code,
  ConnectError,
  type ConnectRouter,
  createRouterTransport,
  type Interceptor,
  type StreamResponse,
} from "@connectrpc/connect";
import { SandboxError } from "@turnbox/core";
import { toConnectError } from "@turnbox/rpc/wire";
import { type ConnectionFactory, createTokenInterceptor } from "../connection.ts";
import { type Peer, withSandboxErrors } from "../sandbox-error-transport.ts";

/** Now, for services in memory. */
export const NOW_MS = Date.parse("2026-01-01T12:00:00Z");

/** Services in memory, for each peer. */
export type Services = Readonly<Record<Peer, (router: ConnectRouter) => void>>;

/** What happens to one call. `lost`: it arrives, and its answer does not. `cut`: its stream breaks after so many messages. */
export type Fault = SandboxError | "refused" | "lost" | { readonly cutAfter: number };

export interface SeenCall {
  readonly peer: Peer;
  readonly url: string;
  readonly token: string;
  readonly method: string;
  /** The request, or the first message of several. */
  readonly message: unknown;
}

export interface ConnectServicesOptions {
  /** Every call, as it begins. */
  readonly calls?: SeenCall[];
  /** What happens to the next calls of a method, one after the other. */
  readonly faults?: Map<string, Fault[]>;
  /** Addresses whose connections were closed. */
  readonly closed?: string[];
}

/** Connections to services in memory, which fail as real ones do. */
export function connectServices(services: Services, options: ConnectServicesOptions = {}): ConnectionFactory {
  const { calls = [], faults = new Map<string, Fault[]>(), closed = [] } = options;
  return ({ url, token }, peer) => {
    const around: Interceptor = (next) => async (request) => {
      const method = request.method.name;
      const authorization = request.header.get("Authorization") ?? "";
      const seen = { peer, url, token: authorization.replace("Bearer ", ""), method, message: undefined as unknown };
      calls.push(seen);
      if (!request.stream) seen.message = request.message;
      else Object.assign(request, { message: noteFirst(request.message, (message) => (seen.message = message)) });
      const fault = faults.get(method)?.shift();
      if (fault instanceof SandboxError) throw toConnectError(fault, "r1");
      if (fault === "refused") throw broken("ECONNREFUSED");
      const response = await next(request).catch((thrown: unknown) => {
        throw thrown instanceof SandboxError ? toConnectError(thrown, "r1") : thrown;
      });
      if (fault === "lost") throw broken("ECONNRESET");
      return typeof fault === "object" && response.stream ? cut(response, fault.cutAfter) : response;
    };
    const transport = createRouterTransport(services[peer], {
      transport: { interceptors: [createTokenInterceptor(token), around] },
    });
    const close = (): void => {
      closed.push(url);
    };
    return { transport: withSandboxErrors(transport, { peer, url }), close, [Symbol.dispose]: close };
  };
}

async function* noteFirst<T>(messages: AsyncIterable<T>, note: (message: T) => void): AsyncIterable<T> {
  let isFirst = true;
  for await (const message of messages) {
    if (isFirst) note(message);
    isFirst = false;
    yield message;
  }
}

const broken = (errno: string): ConnectError =>
  new ConnectError(
    "the connection broke",
    Code.Unavailable,
    undefined,
    undefined,
    Object.assign(new Error(errno), { code: errno }),
  );

function cut(response: StreamResponse, messages: number): StreamResponse {
  const { message } = response;
  return {
    ...response,
    message: (async function* () {
      let left = messages;
      for await (const one of message) {
        if (left-- === 0) break;
        yield one;
      }
      throw broken("ECONNRESET");
    })(),
  };
}
