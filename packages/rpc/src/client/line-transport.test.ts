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
import { Http2Lines } from "./http2-lines.ts";
import { createLineTransport, type LineTransportOptions } from "./line-transport.ts";

const TIMES = { connectTimeoutMs: 5000, pingIntervalMs: 60_000, pingTimeoutMs: 5000 };
const PROTO = "application/proto";
const { SERVING } = HealthCheckResponse_ServingStatus;
const BYTES = toBinary(HealthCheckResponseSchema, create(HealthCheckResponseSchema, { status: SERVING }));

let server: Http2Server;
let lines: Http2Lines;
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
  lines = new Http2Lines(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`, TIMES);
});

afterEach(async () => {
  lines[Symbol.dispose]();
  server.close();
  await once(server, "close");
});

const health = (options: Partial<LineTransportOptions> = {}) =>
  createClient(Health, createLineTransport(lines, { interceptors: [], readMaxBytes: 1024, ...options }));

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
  if (!stream.destroyed) await once(stream, "close");
  return stream.rstCode;
};

describe("unary calls over a line", () => {
  it("bring the message, with header and trailer for who asks", async () => {
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

  it("refuse what is no answer to them", async () => {
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
  ])("fail where a stream is closed with $with before it is answered", async ({ with: reset, code }) => {
    answer = (stream) => {
      stream.close(reset);
    };
    expect((await failureOf(health().check({}))).code).toBe(code);
  });

  it("never take an answer that breaks off for a whole one", async () => {
    answer = (stream) => {
      stream.respond({ ":status": 200, "content-type": PROTO });
      stream.write(BYTES, () => {
        stream.destroy(new Error("broken"));
      });
    };
    expect((await failureOf(health().check({}))).code).toBe(Code.Internal);
  });

  it("never take fewer bytes than were promised for a whole answer", async () => {
    answer = (stream) => {
      stream.respond({ ":status": 200, "content-type": PROTO, "content-length": BYTES.length + 1 });
      stream.end(BYTES);
    };
    await failureOf(health().check({}));
  });

  it("give up on an answer beyond the limit, and tell the service", async () => {
    const streams: ServerHttp2Stream[] = [];
    answer = (stream) => {
      streams.push(stream);
      stream.respond({ ":status": 200, "content-type": PROTO });
      stream.write(Buffer.alloc(4096));
    };
    expect((await failureOf(health().check({}))).code).toBe(Code.ResourceExhausted);
    expect(await Promise.all(streams.map(closedWith))).toEqual([constants.NGHTTP2_CANCEL]);
  });

  it("end with their signal and with their time, and tell the service", async () => {
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

  it("send nothing where their signal has aborted before", async () => {
    let calls = 0;
    answer = (stream) => {
      calls += 1;
      well(stream);
    };
    expect((await failureOf(health().check({}, { signal: AbortSignal.abort() }))).code).toBe(Code.Canceled);
    await health().check({});
    expect(calls).toBe(1);
  });

  it("say what is wrong with a connection that is not made, or lost", async () => {
    using nobody = new Http2Lines("http://127.0.0.1:1", TIMES);
    const client = createClient(Health, createLineTransport(nobody, { interceptors: [], readMaxBytes: 1024 }));
    const refused = await failureOf(client.check({}));
    expect([refused.code, errnoOf(refused)]).toEqual([Code.Unavailable, "ECONNREFUSED"]);
    answer = (stream) => {
      stream.session?.socket.destroy();
    };
    const lost = await failureOf(health().check({}));
    expect(lost.code).not.toBe(Code.Unknown);
  });
});
