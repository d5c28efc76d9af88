import { connect, type Socket } from "node:net";
import { type ConnectRouter, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { file_health_v1_health } from "@turnbox/protocol/health/v1/health_pb";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { SandboxError, systemClock } from "@turnbox/core";
import { createTestAccess } from "@turnbox/core/testing";
import { ConnectionManager } from "../client/connection-manager.ts";
import { createAdmission, DEFAULT_ADMISSION_LIMITS } from "./admission/admission.ts";
import { createHealthBoard } from "./health.ts";
import { type ListenOptions, listen } from "./listen.ts";
import { registerReflection } from "./reflection.ts";
import { createRpcHandler, type RpcHandlerOptions } from "./rpc-handler.ts";
import { type MetricsRoute, serveMetrics } from "./serve-metrics.ts";

const TIMES = { connectTimeoutMs: 5000, pingIntervalMs: 60_000, pingTimeoutMs: 5000 };

export const access = createTestAccess({ clock: systemClock });

export interface Seen {
  cleanups: number;
}

function routes(seen: Seen) {
  return (router: ConnectRouter): void => {
    const board = createHealthBoard();
    board.set("", "serving");
    board.register(router);
    registerReflection(router, [file_health_v1_health]);
    router.service(SessionService, {
      getSession: async ({ sessionId }) => {
        if (sessionId === "slow") await new Promise((resolve) => setTimeout(resolve, 150));
        if (sessionId === "gone") throw new SandboxError("SESSION_NOT_FOUND", "no such session");
        return { session: { sessionId } };
      },
    });
    router.service(ToolService, {
      async *executeToolStream(request, { signal }) {
        const chunk = { event: { case: "progress" as const, value: { data: new Uint8Array(256 * 1024) } } };
        try {
          for (let count = 0; count < (request.call?.toolCallId === "endless" ? 1e9 : 3); count += 1) {
            signal.throwIfAborted();
            yield await Promise.resolve(chunk);
          }
        } finally {
          seen.cleanups += 1;
        }
      },
    });
  };
}

export type Changes = Partial<Omit<ListenOptions, "handler">> & {
  readonly rpc?: Partial<RpcHandlerOptions>;
  readonly metrics?: MetricsRoute;
};

export async function startServer({ rpc = {}, metrics, ...changes }: Changes = {}) {
  const seen: Seen = { cleanups: 0 };
  const admission = createAdmission(DEFAULT_ADMISSION_LIMITS, systemClock);
  const calls = createRpcHandler({ ...access, clock: systemClock, admission, routes: routes(seen), ...rpc });
  const handler = metrics === undefined ? calls : serveMetrics(calls, metrics);
  const server = await listen({ host: "127.0.0.1", port: 0, keys: "absent", handler, drainMs: 1000, ...changes });
  const interceptors = [access.bearer(access.homeToken)];
  const withSession = (
    create: (manager: { baseUrl: string; interceptors: typeof interceptors }) => Transport,
  ): Transport => create({ baseUrl: server.url, interceptors });
  // Not the library's own, in which a connection that it closes and that the server closes at that moment is an error of
  // the whole process.
  const connections = () => ({ sessionManager: new ConnectionManager(server.url, TIMES) });
  return {
    server,
    seen,
    admission,
    connectHttp1: withSession((options) =>
      createConnectTransport({ ...options, httpVersion: "1.1", useBinaryFormat: false }),
    ),
    connectHttp2: withSession((options) => createConnectTransport({ ...options, httpVersion: "2", ...connections() })),
    grpc: withSession((options) => createGrpcTransport({ ...options, ...connections() })),
    [Symbol.asyncDispose]: async () => {
      await server.close({ drainMs: 0 });
    },
  };
}

export const until = async (condition: () => boolean | Promise<boolean>, limitMs = 5000): Promise<void> => {
  for (const endMs = performance.now() + limitMs; !(await condition()); ) {
    if (performance.now() > endMs) throw new Error("waited in vain");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

/** Sends raw bytes and collects what comes back until the connection ends. */
export function openRaw(port: number): { socket: Socket; received: () => string; ended: Promise<void> } {
  const socket = connect(port, "127.0.0.1");
  let received = "";
  socket.setEncoding("latin1").on("data", (text: string) => (received += text));
  socket.on("error", () => undefined);
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  return { socket, received: () => received, ended };
}

export const CHECK =
  "POST /grpc.health.v1.Health/Check HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
