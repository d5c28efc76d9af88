import http from "node:http";
import http2 from "node:http2";
import { gzipSync } from "node:zlib";
import { type ConnectRouter, createClient } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "@turnbox/protocol/health/v1/health_pb";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { systemClock } from "@turnbox/core";
import { fromConnectError } from "../wire/connect-error.ts";
import { createAdmission, DEFAULT_ADMISSION_LIMITS } from "./admission/admission.ts";
import { access, CHECK, openRaw, startServer, until } from "./listen-fixture.suite.ts";

describe("hostile connections", () => {
  it("closes those that stay silent, half-say a protocol or trickle their headers (attack 51)", async () => {
    await using started = await startServer({ limits: { firstBytesMs: 100, headersMs: 200 } });
    const silent = openRaw(started.server.port);
    const half = openRaw(started.server.port);
    half.socket.write("PR");
    const trickle = openRaw(started.server.port);
    trickle.socket.write("POST / HTTP/1.1\r\nX: ");
    await Promise.all([silent.ended, half.ended, trickle.ended]);
    await until(() => started.server.connections === 0);
  });

  it("stays open for honest callers while silent ones hold all there is (attack 51)", async () => {
    await using started = await startServer({ limits: { maxConnections: 20, maxUnproven: 10, firstBytesMs: 60_000 } });
    const silent = Array.from({ length: 60 }, () => openRaw(started.server.port));
    await until(() => started.server.connections > 0);
    const startMs = performance.now();
    expect((await createClient(Health, started.connectHttp2).check({})).status).toBe(ServingStatus.SERVING);
    expect(performance.now() - startMs).toBeLessThan(1000);
    expect(started.server.connections).toBeLessThanOrEqual(20);
    for (const { socket } of silent) socket.destroy();
  });

  it("bounds the connections of one peer", async () => {
    await using started = await startServer({ limits: { maxConnectionsPerPeer: 2 } });
    const first = [openRaw(started.server.port), openRaw(started.server.port)];
    await until(() => started.server.connections === 2);
    const third = openRaw(started.server.port);
    await third.ended;
    for (const { socket } of first) socket.destroy();
    await until(() => started.server.connections === 0);
  });

  it.each(["a b", "[", "", "x:99999999", "%"])("survives the Host header %j (attack 54)", async (host) => {
    await using started = await startServer();
    const raw = openRaw(started.server.port);
    raw.socket.write(
      CHECK.replace("Host: a", `Host: ${host}`).replace("HTTP/1.1\r\n", "HTTP/1.1\r\nConnection: close\r\n"),
    );
    await raw.ended;
    expect(raw.received()).toMatch(/^HTTP\/1\.1 (200|400)/);
    await createClient(Health, started.connectHttp1).check({});
  });

  it("answers malformed requests of every kind with a typed error (attack 54)", async () => {
    await using started = await startServer({ rpc: { maxMessageBytes: 1024 } });
    const send = async (body: string, headers: Record<string, string> = {}) => {
      const response = await fetch(`${started.server.url}/turnbox.host.v1.SessionService/GetSession`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: `Bearer ${access.homeToken.reveal()}`,
          ...headers,
        },
        body,
      });
      const json = (await response.json()) as {
        code: string;
        details?: { debug?: { reason?: string; requestId?: string } }[];
      };
      expect(JSON.stringify(json)).not.toMatch(/node_modules|\/packages\/|at .*\.js/);
      return {
        code: json.code,
        reason: json.details?.[0]?.debug?.reason,
        id: json.details?.[0]?.debug?.requestId,
        header: response.headers.get("x-request-id"),
      };
    };
    const bad = await send("{not json");
    expect(bad).toMatchObject({ code: "invalid_argument", reason: "INVALID_ARGUMENT" });
    expect(bad.id).toBe(bad.header);
    expect(await send(JSON.stringify({ sessionId: "x".repeat(2000) }))).toMatchObject({
      code: "invalid_argument",
      reason: "INVALID_ARGUMENT",
    });
    expect(await send('{"sessionId":7}')).toMatchObject({ reason: "INVALID_ARGUMENT" });
    expect(await send("{}", { "connect-timeout-ms": "1000000000000000000" })).toMatchObject({
      reason: "INVALID_ARGUMENT",
    });
    expect(await send("{}", { "connect-timeout-ms": "-1" })).toMatchObject({ reason: "INVALID_ARGUMENT" });
    expect(await send("{}", { "connect-timeout-ms": "0" })).toMatchObject({ reason: "DEADLINE_EXCEEDED" });
    expect(await send("{}", { "content-encoding": "br" })).toMatchObject({ reason: "UNIMPLEMENTED" });
  });

  it("takes a deadline beyond what a timer holds for a long one, not for none (attack 53)", async () => {
    await using started = await startServer();
    const response = await fetch(`${started.server.url}/turnbox.host.v1.SessionService/GetSession`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "connect-timeout-ms": "9999999999",
        authorization: `Bearer ${access.homeToken.reveal()}`,
      },
      body: JSON.stringify({ sessionId: "slow" }),
    });
    expect(await response.json()).toEqual({ session: { sessionId: "slow" } });
  });

  it("refuses bombs and boasts without taking the memory (attack 49)", async () => {
    await using started = await startServer({ rpc: { maxMessageBytes: 64 * 1024 } });
    const call = (target: string, body: Buffer, headers: Record<string, string>) =>
      new Promise<string>((resolve, reject) => {
        const request = http.request(
          `${started.server.url}/turnbox.host.v1.${target}`,
          {
            method: "POST",
            headers: {
              authorization: `Bearer ${access.homeToken.reveal()}`,
              "transfer-encoding": "chunked",
              ...headers,
            },
          },
          (response) => {
            let text = "";
            response.setEncoding("latin1").on("data", (part: string) => (text += part));
            response.on("end", () => resolve(text));
          },
        );
        request.on("error", reject);
        request.end(body);
      });
    const reasonIn = (text: string): string | undefined => /"reason":"([A-Z_]+)"/.exec(text)?.[1];
    const json = { "content-type": "application/json" };
    const before = process.memoryUsage().rss;
    const bomb = gzipSync(Buffer.from(JSON.stringify({ sessionId: "x".repeat(64 * 1024 * 1024) })));
    // Under jest, zlib's errors are of another realm and Connect does not recognise them; a refusal they are all the same.
    const refused = reasonIn(await call("SessionService/GetSession", bomb, { ...json, "content-encoding": "gzip" }));
    expect(["INVALID_ARGUMENT", "INTERNAL"]).toContain(refused);
    const long = Buffer.from(JSON.stringify({ sessionId: "x".repeat(200 * 1024) }));
    expect(reasonIn(await call("SessionService/GetSession", long, json))).toBe("INVALID_ARGUMENT");
    const deep = Buffer.from(`${"[".repeat(30_000)}${"]".repeat(30_000)}`);
    expect(reasonIn(await call("SessionService/GetSession", deep, json))).toBe("INVALID_ARGUMENT");
    const boast = Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 1]);
    expect(
      reasonIn(await call("ToolService/ExecuteToolStream", boast, { "content-type": "application/connect+json" })),
    ).toBe("INVALID_ARGUMENT");
    // The bomb itself, built here, takes most of it.
    expect(process.memoryUsage().rss - before).toBeLessThan(400 * 1024 * 1024);
    await createClient(Health, started.connectHttp1).check({});
  });

  it("gives gRPC callers the same detail for what the protocol layer refuses", async () => {
    await using started = await startServer({ rpc: { maxMessageBytes: 1024 } });
    const sessions = createClient(SessionService, started.grpc);
    const thrown: unknown = await sessions.getSession({ sessionId: "x".repeat(2000) }).catch((error: unknown) => error);
    expect(fromConnectError(thrown)).toMatchObject({ reason: "INVALID_ARGUMENT", retryable: false });
  });

  it.each(["connectHttp1", "connectHttp2", "grpc"] as const)(
    "says over %s that a method is not there",
    async (kind) => {
      await using started = await startServer();
      const missing = { ...SessionService, typeName: "turnbox.host.v9.SessionService" };
      const method = { ...SessionService.method.getSession, parent: missing };
      const service = {
        ...missing,
        method: { getSession: method },
        methods: [method],
      } as unknown as typeof SessionService;
      const thrown: unknown = await createClient(service, started[kind])
        .getSession({})
        .catch((error: unknown) => error);
      expect(fromConnectError(thrown).reason).toBe("UNIMPLEMENTED");
    },
  );

  it("refuses a call without a token before its body has arrived", async () => {
    await using started = await startServer();
    const raw = openRaw(started.server.port);
    raw.socket.write(
      "POST /turnbox.host.v1.SessionService/GetSession HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{",
    );
    await raw.ended;
    expect(raw.received()).toMatch(/^HTTP\/1\.1 401/);
    expect(raw.received()).toMatch(/connection: close/i);
  });

  it("gives up on a body that does not come, over both versions, and gives its place back (attack 51)", async () => {
    await using started = await startServer({ rpc: { body: { idleMs: 100, wholeMs: 200 } } });
    const headers = { "content-type": "application/json", authorization: `Bearer ${access.homeToken.reveal()}` };
    const target = "/turnbox.host.v1.SessionService/GetSession";
    const overHttp1 = new Promise<number>((resolve, reject) => {
      const request = http.request(`${started.server.url}${target}`, { method: "POST", headers }, (response) =>
        resolve(response.resume().statusCode ?? 0),
      );
      request.on("error", reject);
      request.write("{");
    });
    expect(await overHttp1).toBe(504);
    const session = http2.connect(started.server.url);
    const stream = session.request({ ":method": "POST", ":path": target, ...headers });
    stream.write("{");
    const status = await new Promise((resolve) => stream.once("response", (response) => resolve(response[":status"])));
    expect(status).toBe(504);
    stream.resume();
    await new Promise((resolve) => stream.once("close", resolve));
    session.destroy();
    await until(() => started.admission.inFlight.unary === 0);
  });

  it.each(["reset", "session gone", "socket gone"] as const)(
    "releases the source of a stalled reader: %s (attack 52, M4)",
    async (how) => {
      await using started = await startServer();
      const session = http2.connect(started.server.url);
      session.on("error", () => undefined);
      const body = Buffer.from(JSON.stringify({ call: { toolCallId: "endless" } }));
      const envelope = Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), body]);
      const stream = session.request({
        ":method": "POST",
        ":path": "/turnbox.host.v1.ToolService/ExecuteToolStream",
        "content-type": "application/connect+json",
        authorization: `Bearer ${access.homeToken.reveal()}`,
      });
      stream.on("error", () => undefined);
      stream.end(envelope);
      await new Promise((resolve) => stream.once("response", resolve));
      expect(started.seen.cleanups).toBe(0);
      if (how === "reset") stream.close(http2.constants.NGHTTP2_CANCEL);
      else if (how === "session gone") session.destroy();
      else session.socket.destroy();
      await until(() => started.seen.cleanups === 1 && started.admission.inFlight.stream === 0, 1000);
      session.destroy();
    },
  );

  it("cuts a reader that takes nothing for too long", async () => {
    await using started = await startServer({ rpc: { stalledReaderMs: 100 } });
    const raw = openRaw(started.server.port);
    const body = JSON.stringify({ call: { toolCallId: "endless" } });
    const envelope = `\0\0\0\0${String.fromCharCode(body.length)}${body}`;
    raw.socket.pause();
    raw.socket.write(
      `POST /turnbox.host.v1.ToolService/ExecuteToolStream HTTP/1.1\r\nHost: a\r\nContent-Type: application/connect+json\r\n` +
        `Authorization: Bearer ${access.homeToken.reveal()}\r\nContent-Length: ${envelope.length}\r\n\r\n${envelope}`,
      "latin1",
    );
    await until(() => started.seen.cleanups === 1);
    raw.socket.destroy();
  });

  it("admits no more work than its limit under rapid resets (attack 50, M5)", async () => {
    let running = 0;
    let most = 0;
    const admission = createAdmission({ ...DEFAULT_ADMISSION_LIMITS, maxUnaryCalls: 8 }, systemClock);
    const slow = (router: ConnectRouter): void => {
      router.service(SessionService, {
        getSession: async () => {
          running += 1;
          most = Math.max(most, running);
          await new Promise((resolve) => setTimeout(resolve, 50));
          running -= 1;
          return {};
        },
      });
    };
    await using started = await startServer({ rpc: { routes: slow, admission } });
    const session = http2.connect(started.server.url);
    session.on("error", () => undefined);
    const request = {
      ":method": "POST",
      ":path": "/turnbox.host.v1.SessionService/GetSession",
      "content-type": "application/json",
      authorization: `Bearer ${access.homeToken.reveal()}`,
    };
    for (let round = 0; round < 20; round += 1) {
      const streams = Array.from({ length: 50 }, () =>
        session
          .request(request)
          .on("error", () => undefined)
          .end("{}"),
      );
      if (round % 2 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      for (const stream of streams) stream.close(http2.constants.NGHTTP2_CANCEL);
    }
    session.destroy();
    await until(() => running === 0 && admission.inFlight.unary === 0);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(8);
    await using fresh = await startServer();
    await createClient(Health, fresh.connectHttp2).check({});
  });

  it("closes an idle HTTP/2 session and one whose peer does not answer, and keeps one with an open stream", async () => {
    await using started = await startServer({ limits: { idleSessionMs: 100, pingMs: 40 } });
    const idle = http2.connect(started.server.url);
    const watching = createClient(Health, started.grpc).watch({})[Symbol.asyncIterator]();
    await watching.next();
    await until(() => idle.closed || idle.destroyed);
    const deaf = openRaw(started.server.port);
    deaf.socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    deaf.socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
    await deaf.ended;
    expect(started.server.connections).toBe(1);
    await watching.return?.();
  });
});
