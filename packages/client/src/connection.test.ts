import { createServer, type Http2Server } from "node:http2";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { toConnectError } from "@turnbox/rpc/wire";
import { SandboxControlService } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { OutputStream, ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { connectHost, connectTurnbox } from "./client.ts";

let server: Http2Server;
let url: string;
let tokens: string[];
let cut: () => void;

const never = new Promise<never>(() => undefined);

beforeEach(async () => {
  tokens = [];
  // The adapter complains there about streams that these tests break on purpose.
  jest.spyOn(console, "error").mockImplementation(() => undefined);
  const handler = connectNodeAdapter({
    routes: (router) => {
      router.service(SandboxControlService, {
        listSandboxes: (_request, { requestHeader }) => {
          tokens.push(requestHeader.get("authorization") ?? "");
          return {};
        },
        getSandbox: ({ sandboxId }) => {
          throw toConnectError(
            new SandboxError("SANDBOX_NOT_FOUND", `no ${sandboxId}`, { metadata: { sandboxId } }),
            "r7",
          );
        },
        createSandbox: async () => await never,
      });
      router.service(ToolService, {
        async *executeToolStream() {
          yield { event: { case: "progress", value: { stream: OutputStream.STDOUT, data: new Uint8Array([1]) } } };
          await never;
        },
      });
    },
  });
  server = createServer(handler);
  const sockets = new Set<{ destroy(): void }>();
  server.on("session", (session) => sockets.add(session.socket));
  cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
});

afterEach(async () => {
  jest.restoreAllMocks();
  cut();
  await new Promise((resolve) => server.close(resolve));
});

const failureOf = async (act: Promise<unknown>): Promise<SandboxError> => {
  const thrown: unknown = await act.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(SandboxError);
  return thrown as SandboxError;
};

describe("connectTurnbox", () => {
  it("sends the token with every call", async () => {
    using turnbox = connectTurnbox({ url, token: "t1" });
    await turnbox.sandboxes.listSandboxes({});
    await turnbox.sandboxes.listSandboxes({});
    expect(tokens).toEqual(["Bearer t1", "Bearer t1"]);
  });

  it("brings the server's reason and metadata back", async () => {
    using turnbox = connectTurnbox({ url, token: "t" });
    const error = await failureOf(turnbox.sandboxes.getSandbox({ sandboxId: "x" }));
    expect(error).toMatchObject({ reason: "SANDBOX_NOT_FOUND", message: "no x", admitted: "no" });
    expect(error.metadata).toEqual({ sandboxId: "x", requestId: "r7" });
  });

  it("says that no server answers if the connection is refused, and that nothing happened", async () => {
    const free = createTcpServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => free.once("listening", resolve));
    const { port } = free.address() as AddressInfo;
    await new Promise((resolve) => free.close(resolve));
    const refused = `http://127.0.0.1:${String(port)}`;
    using turnbox = connectTurnbox({ url: refused, token: "t" });
    const error = await failureOf(turnbox.sandboxes.listSandboxes({}));
    expect(error).toMatchObject({ reason: "SERVER_UNREACHABLE", admitted: "no", metadata: { url: refused } });
    using host = connectHost({ url: refused, token: "t" });
    expect(await failureOf(host.host.healthCheck({}))).toMatchObject({ reason: "HOST_UNREACHABLE", admitted: "no" });
  });

  it("does not know what happened where the connection breaks under a call", async () => {
    using turnbox = connectTurnbox({ url, token: "t" });
    await turnbox.sandboxes.listSandboxes({});
    const call = failureOf(turnbox.sandboxes.createSandbox({}));
    await new Promise((resolve) => server.once("stream", resolve));
    cut();
    expect(await call).toMatchObject({ reason: "SERVER_UNREACHABLE", admitted: "unknown" });
  });

  it("ends a call with its signal, and tells a timeout from a cancel", async () => {
    using turnbox = connectTurnbox({ url, token: "t" });
    const controller = new AbortController();
    const call = failureOf(turnbox.sandboxes.createSandbox({}, { signal: controller.signal }));
    await new Promise((resolve) => server.once("stream", resolve));
    controller.abort();
    expect((await call).reason).toBe("CANCELLED");
    const late = failureOf(turnbox.sandboxes.createSandbox({}, { signal: AbortSignal.timeout(20) }));
    expect((await late).reason).toBe("DEADLINE_EXCEEDED");
  });

  it("refuses an address that is none before anything is sent", () => {
    expect(() => connectTurnbox({ url: "nowhere", token: "t" })).toThrow(SandboxError);
  });
});

describe("connectHost", () => {
  it("gives streams that fail with the same errors", async () => {
    using host = connectHost({ url, token: "t" });
    const controller = new AbortController();
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const { event } of host.tools.executeToolStream({}, { signal: controller.signal })) {
        seen.push(event.case);
        controller.abort();
      }
    })();
    expect((await failureOf(reading)).reason).toBe("CANCELLED");
    expect(seen).toEqual(["progress"]);
  });
});
