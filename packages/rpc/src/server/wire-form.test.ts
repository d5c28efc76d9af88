import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient, createContextValues, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { describe, expect, it } from "@jest/globals";
import {
  type ExecuteToolStreamResponse,
  ExecuteToolStreamResponseSchema,
  ToolService,
} from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { SandboxError } from "@turnbox/core";
import { access, startServer } from "./listen-fixture.suite.ts";
import { expectWireForms, withWireForm } from "./wire-form.ts";

const progress = (data: Uint8Array): ExecuteToolStreamResponse =>
  create(ExecuteToolStreamResponseSchema, { event: { case: "progress", value: { data } } });

/** The same message with a form of two parts. */
function inParts(data: Uint8Array): ExecuteToolStreamResponse {
  const message = progress(data);
  const bytes = toBinary(ExecuteToolStreamResponseSchema, message);
  return withWireForm(message, [bytes.subarray(0, 7), bytes.subarray(7)]);
}

const SENT = [
  inParts(Buffer.alloc(300_000, 1)),
  progress(Buffer.from("small")),
  create(ExecuteToolStreamResponseSchema),
  inParts(Buffer.from("in two parts")),
];

const start = () =>
  startServer({
    rpc: {
      routes: (router) => {
        router.service(ToolService, {
          async *executeToolStream({ call }) {
            for (const message of SENT) yield await Promise.resolve(message);
            if (call?.toolCallId === "fails") throw new SandboxError("SESSION_NOT_FOUND", "gone");
          },
        });
      },
    },
  });

const lengthOf = ({ event }: ExecuteToolStreamResponse): number =>
  event.case === "progress" ? event.value.data.length : 0;

type Server = Awaited<ReturnType<typeof start>>;

const TRANSPORTS: readonly (readonly [string, (server: Server) => Transport])[] = [
  ["Connect in JSON", (server) => server.connectHttp1],
  [
    "Connect over HTTP/1.1",
    ({ server }) =>
      createConnectTransport({
        baseUrl: server.url,
        httpVersion: "1.1",
        interceptors: [access.bearer(access.homeToken)],
      }),
  ],
  ["Connect over HTTP/2", (server) => server.connectHttp2],
  ["gRPC", (server) => server.grpc],
];

describe.each(TRANSPORTS)("messages with a form, by %s", (_name, transportTo) => {
  it("arrive among others as what they are", async () => {
    await using server = await start();
    const client = createClient(ToolService, transportTo(server));
    const seen: ExecuteToolStreamResponse[] = [];
    for await (const message of client.executeToolStream({ call: {} })) seen.push(message);
    expect(seen.map(lengthOf)).toEqual(SENT.map(lengthOf));
    expect(seen[3]).toMatchObject({ event: { value: { data: new Uint8Array(Buffer.from("in two parts")) } } });
  });

  it("leave the failure that follows them as it is", async () => {
    await using server = await start();
    const client = createClient(ToolService, transportTo(server));
    let seen = 0;
    const reading = (async () => {
      for await (const _message of client.executeToolStream({ call: { toolCallId: "fails" } })) seen += 1;
    })();
    await expect(reading).rejects.toThrow("gone");
    expect(seen).toBe(SENT.length);
  });
});

it("expects forms in binary streams only", () => {
  const expected = (contentType: string, method = ToolService.method.executeToolStream as never) =>
    expectWireForms(createContextValues(), method, new Headers({ "content-type": contentType })) !== undefined;
  expect(
    ["application/connect+proto", "application/grpc", "application/grpc+proto"].map((type) => expected(type)),
  ).toEqual([true, true, true]);
  expect(
    ["application/connect+json", "application/grpc+json", "application/json"].map((type) => expected(type)),
  ).toEqual([false, false, false]);
  expect(expected("application/grpc", ToolService.method.executeTool as never)).toBe(false);
});

it("has the form of a message follow its own head", async () => {
  const forms = expectWireForms(
    createContextValues(),
    ToolService.method.executeToolStream,
    new Headers({ "content-type": "application/grpc" }),
  );
  const inside: unknown[] = [];
  async function* one(): AsyncIterable<ExecuteToolStreamResponse> {
    yield await Promise.resolve(inParts(Buffer.from("abc")));
  }
  for await (const message of forms?.setAside(one(), ExecuteToolStreamResponseSchema) ?? []) inside.push(message);
  expect(inside).toEqual([create(ExecuteToolStreamResponseSchema)]);
  const sent = Buffer.concat(forms?.replace(new Uint8Array(5)) ?? []);
  expect(sent.readUInt32BE(1)).toBe(sent.length - 5);
  expect(fromBinary(ExecuteToolStreamResponseSchema, sent.subarray(5))).toEqual(
    progress(new Uint8Array(Buffer.from("abc"))),
  );
  expect(forms?.replace(new Uint8Array([2, 0, 0, 0, 0]))).toEqual([new Uint8Array([2, 0, 0, 0, 0])]);
});
