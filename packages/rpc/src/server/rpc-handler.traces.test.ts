import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Client, createClient, createRouterTransport, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { SandboxControlService } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { SandboxError, systemClock } from "@turnbox/core";
import { createTestAccess } from "@turnbox/core/testing";
import { listen, type ListeningServer } from "./listen.ts";
import { createRpcHandler } from "./rpc-handler.ts";
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from "../trace/otlp-receiver.suite.ts";
import { openTracing } from "../trace/open-tracing.ts";
import { NO_TRACING, type Tracing } from "../trace/tracing.ts";

describe("without traces", () => {
  it("passes everything on as it is", async () => {
    const options = { serviceName: "x", version: "1", clock: systemClock, onProblem: () => undefined };
    const tracing = await openTracing({ ...options, env: {} });
    expect(tracing).toBe(NO_TRACING);
    const headers: string[] = [];
    const transport = createRouterTransport(
      (router) => {
        router.service(SessionService, {
          getSession: (_, { requestHeader }) => {
            headers.push(...requestHeader.keys());
            return {};
          },
        });
      },
      { router: { interceptors: [tracing.server] }, transport: { interceptors: [tracing.client] } },
    );
    await createClient(SessionService, transport).getSession({});
    expect(headers).not.toContain("traceparent");
    expect(await tracing.span({ name: "x" }, () => Promise.resolve(7))).toBe(7);
  });
});

describe("a trace", () => {
  const access = createTestAccess({ clock: systemClock });
  const problems: string[] = [];
  let receiver: OtlpReceiver;
  let tracing: Tracing;
  let host: ListeningServer;
  let orchestrator: ListeningServer;
  const before = { ...process.env };

  const serve = (routes: Parameters<typeof createRpcHandler>[0]["routes"]): Promise<ListeningServer> =>
    listen({
      host: "127.0.0.1",
      port: 0,
      keys: "absent",
      handler: createRpcHandler({ ...access, clock: systemClock, outerInterceptors: [tracing.server], routes }),
    });
  const transportTo = (server: ListeningServer): Transport =>
    createConnectTransport({
      baseUrl: server.url,
      httpVersion: "2",
      idleConnectionTimeoutMs: 10,
      interceptors: [access.bearer(access.homeToken), tracing.client],
    });

  beforeAll(async () => {
    receiver = await startOtlpReceiver();
    Object.assign(process.env, {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_BSP_SCHEDULE_DELAY: "60000",
    });
    tracing = await openTracing({
      serviceName: "turnbox-test",
      version: "1",
      env: process.env,
      clock: systemClock,
      onProblem: (message) => void problems.push(message),
    });
    host = await serve((router) => {
      router.service(SessionService, {
        createSession: ({ sessionId }) =>
          tracing.span({ name: "storage.createSession" }, () => Promise.resolve({ session: { sessionId } })),
      });
      router.service(ToolService, {
        async *executeToolStream() {
          yield {};
          await tracing.span({ name: "tool bash" }, () => Promise.resolve());
          throw new SandboxError("POOL_FULL", "full");
        },
        async *attachToolCall() {
          yield await Promise.resolve({});
        },
      });
    });
    orchestrator = await serve((router) => {
      router.service(SandboxControlService, {
        listTemplates: () => ({}),
        createSandbox: async () => {
          await tracing.around("store")("reserveSandbox", () => Promise.resolve());
          await createClient(SessionService, transportTo(host)).createSession({ sessionId: "s" });
          return { sandboxId: "fleet:i:s" };
        },
      });
    });
    const sandboxes: Client<typeof SandboxControlService> = createClient(
      SandboxControlService,
      transportTo(orchestrator),
    );
    const tools = createClient(ToolService, transportTo(host));
    await tracing.span({ name: "turnbox create" }, () => sandboxes.createSandbox({}));
    await tracing
      .span({ name: "turnbox exec" }, async () => {
        for await (const _ of tools.executeToolStream({}));
      })
      .catch(() => undefined);
    await tracing.span({ name: "turnbox watch" }, async () => {
      for await (const _ of tools.attachToolCall({})) break;
    });
    await sandboxes.listTemplates({});
    // Sends what has gathered.
    await tracing[Symbol.asyncDispose]();
    // The SDK is hundreds of modules, which a busy machine loads slowly.
  }, 120_000);
  afterAll(async () => {
    await orchestrator[Symbol.asyncDispose]();
    await host[Symbol.asyncDispose]();
    await receiver[Symbol.asyncDispose]();
    process.env = before;
  });

  /** The names from the span up to the root of its trace. */
  const pathOf = (span: ReceivedSpan): readonly string[] => {
    const parent = receiver.spans.find(({ spanId }) => spanId === span.parentSpanId);
    return parent === undefined ? [span.name] : [...pathOf(parent), span.name];
  };
  const pathTo = (name: string): readonly string[] => {
    const found = receiver.spans.find((span) => span.name === name);
    if (found === undefined) throw new Error(`there is no span ${name}`);
    return pathOf(found);
  };

  it("leads from the client through the orchestrator and the host to a step of the create", () => {
    const create = `${SandboxControlService.typeName}/CreateSandbox`;
    const session = `${SessionService.typeName}/CreateSession`;
    expect(pathTo("storage.createSession")).toEqual([
      "turnbox create",
      create,
      create,
      session,
      session,
      "storage.createSession",
    ]);
    expect(pathTo("store.reserveSandbox")).toEqual(["turnbox create", create, create, "store.reserveSandbox"]);
    expect(new Set(receiver.spans.map(({ traceId }) => traceId)).size).toBe(3);
    expect(new Set(receiver.spans.map(({ service }) => service))).toEqual(new Set(["turnbox-test"]));
    expect(problems).toEqual([]);
  });

  it("has the client's span of a stream that was not read to its end", () => {
    const stream = `${ToolService.typeName}/AttachToolCall`;
    const paths = receiver.spans.filter(({ name }) => name === stream).map(pathOf);
    expect(paths).toEqual(
      expect.arrayContaining([
        ["turnbox watch", stream],
        ["turnbox watch", stream, stream],
      ]),
    );
  });

  it("is not begun by a call that only reads", () => {
    expect(receiver.spans.map(({ name }) => name)).not.toContain(`${SandboxControlService.typeName}/ListTemplates`);
  });

  it("holds what a stream does after its first message, and how it ended", () => {
    const stream = `${ToolService.typeName}/ExecuteToolStream`;
    expect(pathTo("tool bash")).toEqual(["turnbox exec", stream, stream, "tool bash"]);
    const ended = receiver.spans.filter(({ name }) => name === stream) as (ReceivedSpan & { status?: unknown })[];
    expect(ended.map(({ status }) => status)).toEqual([
      { code: 2, message: "resource_exhausted" },
      { code: 2, message: "resource_exhausted" },
    ]);
  });
});
