import { once } from "node:events";
import {
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import {
  Health,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
} from "@turnbox/protocol/health/v1/health_pb";
import { errnoOf } from "@turnbox/core";
import { ConnectionManager } from "./connection-manager.ts";
import { createHttp2Transport, type Http2TransportOptions } from "./transport.ts";

const TIMES = { connectTimeoutMs: 5000, pingIntervalMs: 60_000, pingTimeoutMs: 5000 };
const PROTO = "application/proto";
const { SERVING } = HealthCheckResponse_ServingStatus;
const BYTES = toBinary(HealthCheckResponseSchema, create(HealthCheckResponseSchema, { status: SERVING }));

let server: Http2Server;
let connections: ConnectionManager;
/** What the server does with a call. */
let answer: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

beforeEach(async () => {
  server = createServer();
  server.on("stream", (stream, headers) => {
    stream.on("error", () => undefined);
    answer(stream, headers);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  connections = new ConnectionManager(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`, TIMES);
});

afterEach(async () => {
  connections[Symbol.dispose]();
  server.close();
  await once(server, "close");
});

const health = (options: Partial<Http2TransportOptions> = {}) =>
  createClient(Health, createHttp2Transport(connections, { interceptors: [], readMaxBytes: 1024, ...options }));

const failureOf = async (call: Promise<unknown>): Promise<ConnectError> => {
  const thrown: unknown = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(ConnectError);
  return thrown as ConnectError;
};

const well = (stream: ServerHttp2Stream): void => {
  stream.respond({ ":status": 200, "content-type": PROTO, "content-length": BYTES.length });
  stream.end(BYTES);
};

/** What the server saw a stream be closed with. */
const closedWith = async (stream: ServerHttp2Stream): Promise<number> => {
  if (!stream.closed) await new Promise((resolve) => stream.once("close", resolve));
  return stream.rstCode;
};

describe("unary calls of a transport", () => {
  it("bring the message, and header and trailer on request", async () => {
    answer = (stream) => {
      stream.respond({ ":status": 200, "content-type": PROTO, "x-one": "1", "trailer-x-two": "2" });
      stream.write(BYTES.subarray(0, 1));
      stream.end(BYTES.subarray(1));
    };
    const seen: (string | null)[] = [];
    const { status } = await health().check(
      {},
      {
        onHeader: (header) => seen.push(header.get("x-one"), header.get("trailer-x-two")),
        onTrailer: (trailer) => seen.push(trailer.get("x-two")),
      },
    );
    expect([status, seen]).toEqual([SERVING, ["1", null, "2"]]);
  });

  it("say what they are, and go through the interceptors, outermost first", async () => {
    const order: string[] = [];
    const named =
      (name: string): Interceptor =>
      (next) =>
      async (request) => {
        order.push(name);
        request.header.set(`x-${name}`, "set");
        return await next(request);
      };
    let seen: IncomingHttpHeaders = {};
    answer = (stream, headers) => {
      seen = headers;
      well(stream);
    };
    await health({ interceptors: [named("outer"), named("inner")] }).check({}, { timeoutMs: 4000 });
    expect(order).toEqual(["outer", "inner"]);
    expect(seen).toMatchObject({
      ":method": "POST",
      ":path": "/grpc.health.v1.Health/Check",
      "content-type": PROTO,
      "connect-protocol-version": "1",
      "connect-timeout-ms": "4000",
      "x-outer": "set",
      "x-inner": "set",
    });
  });

  it("fail with the error that the service sends", async () => {
    answer = (stream) => {
      stream.respond({ ":status": 404, "content-type": "application/json" });
      stream.end(JSON.stringify({ code: "not_found", message: "no such service" }));
    };
    const error = await failureOf(health().check({}));
    expect([error.code, error.rawMessage]).toEqual([Code.NotFound, "no such service"]);
  });

  it("refuse an answer of another form", async () => {
    answer = (stream) => {
      stream.respond({ ":status": 200, "content-type": "text/html" });
      stream.end("<html>");
    };
    expect((await failureOf(health().check({}))).message).toMatch(/text\/html/);
    answer = (stream) => {
      stream.respond({ ":status": 200, "content-type": PROTO, "content-encoding": "br" });
      stream.end(BYTES);
    };
    expect((await failureOf(health().check({}))).message).toMatch(/br/);
  });

  it.each([
    { with: constants.NGHTTP2_CANCEL, code: Code.Canceled },
    { with: constants.NGHTTP2_REFUSED_STREAM, code: Code.Unavailable },
    { with: constants.NGHTTP2_ENHANCE_YOUR_CALM, code: Code.ResourceExhausted },
    { with: constants.NGHTTP2_INTERNAL_ERROR, code: Code.Internal },
    { with: constants.NGHTTP2_NO_ERROR, code: Code.Internal },
  ])("fail if a stream is reset with $with before it is answered", async ({ with: reset, code }) => {
    answer = (stream) => {
      stream.close(reset);
    };
    expect((await failureOf(health().check({}))).code).toBe(code);
  });

  it.each([
    ["its stream", (stream: ServerHttp2Stream) => stream.destroy(new Error("broken"))],
    ["its connection", (stream: ServerHttp2Stream) => stream.session?.socket.destroy()],
  ])("fail if an answer breaks off with %s, after all bytes of its message", async (_what, breakOff) => {
    answer = (stream) => {
      stream.respond({ ":status": 200, "content-type": PROTO });
      stream.write(BYTES, () => {
        breakOff(stream);
      });
    };
    await failureOf(health().check({}));
  });

  it("fail if an answer has fewer bytes than it promises", async () => {
    answer = (stream) => {
      stream.respond({ ":status": 200, "content-type": PROTO, "content-length": BYTES.length + 1 });
      stream.end(BYTES);
    };
    await failureOf(health().check({}));
  });

  it("fail if an answer is longer than the limit, and reset the stream", async () => {
    const streams: ServerHttp2Stream[] = [];
    answer = (stream) => {
      streams.push(stream);
      stream.respond({ ":status": 200, "content-type": PROTO });
      stream.write(Buffer.alloc(4096));
    };
    expect((await failureOf(health().check({}))).code).toBe(Code.ResourceExhausted);
    expect(await Promise.all(streams.map(closedWith))).toEqual([constants.NGHTTP2_CANCEL]);
  });

  it("end with their signal and with their time, and reset the stream", async () => {
    const streams: ServerHttp2Stream[] = [];
    const controller = new AbortController();
    answer = (stream) => {
      streams.push(stream);
      controller.abort();
    };
    const aborted = await failureOf(health().check({}, { signal: controller.signal }));
    const late = await failureOf(health().check({}, { timeoutMs: 20 }));
    expect([aborted.code, late.code]).toEqual([Code.Canceled, Code.DeadlineExceeded]);
    expect(await Promise.all(streams.map(closedWith))).toEqual([constants.NGHTTP2_CANCEL, constants.NGHTTP2_CANCEL]);
  });

  it("send nothing if their signal has aborted before", async () => {
    let calls = 0;
    answer = (stream) => {
      calls += 1;
      well(stream);
    };
    expect((await failureOf(health().check({}, { signal: AbortSignal.abort() }))).code).toBe(Code.Canceled);
    await health().check({});
    expect(calls).toBe(1);
  });

  it("say what is wrong with a connection that is not made, or is lost", async () => {
    using unreachable = new ConnectionManager("http://127.0.0.1:1", TIMES);
    const client = createClient(Health, createHttp2Transport(unreachable, { interceptors: [], readMaxBytes: 1024 }));
    const refused = await failureOf(client.check({}));
    expect(errnoOf(refused)).toBe("ECONNREFUSED");
    answer = (stream) => {
      stream.session?.socket.destroy();
    };
    const lost = await failureOf(health().check({}));
    expect(lost.code).not.toBe(Code.Unknown);
  });
});
