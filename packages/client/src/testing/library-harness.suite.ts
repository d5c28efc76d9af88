import { type ConnectRouter, createRouterTransport, type Interceptor, type StreamResponse } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import { type Clock, SandboxError, toConnectError } from "@turnbox/core";
import type { ConnectionFactory } from "../connection.ts";
import { createTokenInterceptor } from "../connection.ts";
import { type Peer, withSandboxErrors } from "../sandbox-error-transport.ts";
import { Turnbox } from "../turnbox/turnbox.ts";

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

export interface LibraryHarness extends Disposable {
  readonly turnbox: Turnbox;
  readonly calls: SeenCall[];
  /** What happens to the next calls of a method, one after the other. */
  readonly faults: Map<string, Fault[]>;
  /** Addresses whose connections were closed. */
  readonly closed: string[];
  /** How long was slept between attempts. */
  readonly sleptMs: number[];
  /** The fields of the requests of a method. */
  sent(method: string): readonly Readonly<Record<string, unknown>>[];
}

/** Sleeps from here on are deadlines, which do not pass in a test. */
const DEADLINE_MS = 1000;

/** The library over services in memory, on a clock whose short waits take no time. */
export function createLibraryHarness(
  services: Readonly<Record<Peer, (router: ConnectRouter) => void>>,
  { clock: ownClock }: { readonly clock?: Clock } = {},
): LibraryHarness {
  const calls: SeenCall[] = [];
  const faults = new Map<string, Fault[]>();
  const closed: string[] = [];
  const sleptMs: number[] = [];
  const connect: ConnectionFactory = ({ url, token }, peer) => {
    const record: Interceptor = (next) => async (request) => {
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
      transport: { interceptors: [createTokenInterceptor(token), record] },
    });
    const close = (): void => {
      closed.push(url);
    };
    return { transport: withSandboxErrors(transport, { peer, url }), close, [Symbol.dispose]: close };
  };
  const clock = ownClock ?? createJumpingClock(sleptMs);
  const turnbox = Turnbox.connect({ url: "http://127.0.0.1:7700", token: "server-token", env: {}, connect, clock });
  return {
    turnbox,
    calls,
    faults,
    closed,
    sleptMs,
    sent: (method) =>
      calls.flatMap((call) => (call.method === method ? [call.message as Readonly<Record<string, unknown>>] : [])),
    [Symbol.dispose]: () => {
      turnbox.close();
    },
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

function createJumpingClock(sleptMs: number[]): Clock {
  let monotonicMs = 0;
  return {
    nowMs: () => Date.parse("2026-01-01T12:00:00Z") + monotonicMs,
    monotonicMs: () => monotonicMs,
    sleep: async (ms, { signal } = {}) => {
      if (ms >= DEADLINE_MS) {
        await new Promise((_, reject) => signal?.addEventListener("abort", reject));
      }
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
      sleptMs.push(ms);
      monotonicMs += ms;
    },
  };
}
