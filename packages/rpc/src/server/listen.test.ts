import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it } from "@jest/globals";
import { ServerReflection } from "@turnbox/protocol/grpc/reflection/v1/reflection_pb";
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "@turnbox/protocol/health/v1/health_pb";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { fromConnectError } from "../wire/connect-error.ts";
import { access, CHECK, openRaw, startServer, until } from "./listen-fixture.suite.ts";

describe("one port", () => {
  it.each(["connectHttp1", "connectHttp2", "grpc"] as const)(
    "serves %s: unary, streams, errors, reflection where it fits",
    async (kind) => {
      await using started = await startServer();
      const transport = started[kind];
      expect((await createClient(Health, transport).check({})).status).toBe(ServingStatus.SERVING);
      const sessions = createClient(SessionService, transport);
      expect((await sessions.getSession({ sessionId: "s1" })).session?.sessionId).toBe("s1");
      const failure = fromConnectError(
        await sessions.getSession({ sessionId: "gone" }).catch((error: unknown) => error),
      );
      expect(failure.reason).toBe("SESSION_NOT_FOUND");
      let bytes = 0;
      for await (const { event } of createClient(ToolService, transport).executeToolStream({})) {
        if (event.case === "progress") bytes += event.value.data.length;
      }
      expect(bytes).toBe(3 * 256 * 1024);
      if (kind === "connectHttp1") return;
      const questions = (async function* () {
        yield await Promise.resolve({ messageRequest: { case: "listServices" as const, value: "" } });
      })();
      for await (const answer of createClient(ServerReflection, transport).serverReflectionInfo(questions)) {
        expect(answer.messageResponse).toMatchObject({
          value: { service: [{ name: "grpc.health.v1.Health" }, { name: "grpc.reflection.v1.ServerReflection" }] },
        });
      }
    },
  );

  it("answers plain HTTP and JSON, with the request's id and without a token only health", async () => {
    await using started = await startServer();
    const post = (method: string, init: RequestInit = {}) =>
      fetch(`${started.server.url}/${method}`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-request-id": "mine" },
        body: "{}",
        ...init,
      });
    const health = await post("grpc.health.v1.Health/Check");
    expect([health.status, await health.json()]).toEqual([200, { status: "SERVING" }]);
    expect(health.headers.get("x-request-id")).toBe("mine");
    const refused = await post("turnbox.host.v1.SessionService/GetSession");
    expect(refused.status).toBe(401);
    expect(refused.headers.get("x-request-id")).toBe("mine");
    expect(await refused.json()).toMatchObject({
      code: "unauthenticated",
      details: [{ debug: { reason: "UNAUTHENTICATED", requestId: "mine" } }],
    });
  });

  it("waits for a first byte that comes late and bytes that come one by one", async () => {
    await using started = await startServer();
    const raw = openRaw(started.server.port);
    for (const byte of CHECK.slice(0, 4)) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      raw.socket.write(byte);
    }
    raw.socket.write(CHECK.slice(4));
    await until(() => raw.received().includes("SERVING"));
    raw.socket.destroy();
  });

  it("recognises HTTP/2 in a preface that comes in pieces", async () => {
    await using started = await startServer();
    const raw = openRaw(started.server.port);
    for (const part of ["P", "RI", " * HTTP/2.0\r\n\r\nSM\r\n\r\n"]) {
      raw.socket.write(part);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    raw.socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
    // The server's own SETTINGS frame, type 4 on stream 0.
    await until(() => raw.received().length >= 9);
    expect(raw.received().charCodeAt(3)).toBe(4);
    raw.socket.destroy();
  });
});

describe("start and stop", () => {
  it("says PORT_IN_USE with host and port", async () => {
    await using started = await startServer();
    await expect(startServer({ port: started.server.port })).rejects.toMatchObject({
      reason: "PORT_IN_USE",
      metadata: { port: String(started.server.port) },
    });
  });

  it("refuses a bind address that is not loopback before it listens (attack 63)", async () => {
    await expect(startServer({ host: "0.0.0.0" })).rejects.toMatchObject({ reason: "CONFIG_INVALID" });
  });

  it("says CONFIG_INVALID for an address of another machine", async () => {
    await using tls = createTls();
    await expect(startServer({ host: "203.0.113.7", keys: "present", tls: tls.material })).rejects.toMatchObject({
      reason: "CONFIG_INVALID",
    });
  });

  it.each(["connectHttp1", "connectHttp2", "grpc"] as const)(
    "lets a call in flight over %s end, takes no new connection, and closes",
    async (kind) => {
      const started = await startServer();
      const call = createClient(SessionService, started[kind]).getSession({ sessionId: "slow" });
      await until(() => started.admission.inFlight.unary === 1);
      const closing = started.server.close({ drainMs: 3000 });
      const startMs = performance.now();
      expect((await call).session?.sessionId).toBe("slow");
      await closing;
      expect(performance.now() - startMs).toBeLessThan(2500);
      expect(started.server.connections).toBe(0);
      await expect(fetch(`${started.server.url}/`)).rejects.toThrow();
    },
  );

  it("cuts at the deadline what does not end", async () => {
    const started = await startServer();
    const call = { call: { toolCallId: "endless" } };
    const stream = createClient(ToolService, started.grpc).executeToolStream(call)[Symbol.asyncIterator]();
    await stream.next();
    await started.server.close({ drainMs: 50 });
    const rest = async (): Promise<void> => {
      while ((await stream.next()).done !== true);
    };
    await expect(rest()).rejects.toThrow();
    await until(() => started.server.connections === 0);
    await started.server[Symbol.asyncDispose]();
  });
});

/** A key and a certificate for localhost, made by the openssl program. */
function createTls() {
  const folder = mkdtempSync(path.join(tmpdir(), "listen-tls-"));
  const file = (name: string): string => path.join(folder, name);
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      "-days",
      "1",
      "-subj",
      "/CN=localhost",
      "-addext",
      "subjectAltName=IP:127.0.0.1",
      "-keyout",
      file("key.pem"),
      "-out",
      file("cert.pem"),
    ],
    { stdio: "ignore" },
  );
  return {
    material: { certificate: readFileSync(file("cert.pem")), privateKey: readFileSync(file("key.pem")) },
    [Symbol.asyncDispose]: async () => {
      rmSync(folder, { recursive: true });
      await Promise.resolve();
    },
  };
}

describe("with TLS", () => {
  it("serves both versions by ALPN on any address, and nothing in the clear", async () => {
    await using tls = createTls();
    await using started = await startServer({ host: "0.0.0.0", keys: "present", tls: tls.material });
    expect(started.server.url).toMatch(/^https:/);
    const baseUrl = `https://127.0.0.1:${started.server.port}`;
    const nodeOptions = { ca: tls.material.certificate };
    const interceptors = [access.bearer(access.homeToken)];
    const http1 = createConnectTransport({ baseUrl, httpVersion: "1.1", nodeOptions, interceptors });
    const grpc = createGrpcTransport({ baseUrl, nodeOptions, interceptors, idleConnectionTimeoutMs: 10 });
    for (const transport of [http1, grpc]) {
      expect((await createClient(SessionService, transport).getSession({ sessionId: "s1" })).session?.sessionId).toBe(
        "s1",
      );
    }
    const plain = openRaw(started.server.port);
    plain.socket.write(CHECK);
    await plain.ended;
    expect(plain.received()).not.toContain("SERVING");
    await started.server.close({ drainMs: 500 });
    expect(started.server.connections).toBe(0);
  });

  it("does not wait at its stop for a peer that never finishes its handshake, and leaves it not open", async () => {
    await using tls = createTls();
    const started = await startServer({ keys: "present", tls: tls.material });
    const raw = openRaw(started.server.port);
    await once(raw.socket, "connect");
    await createClient(
      Health,
      createConnectTransport({
        baseUrl: started.server.url,
        httpVersion: "1.1",
        nodeOptions: { ca: tls.material.certificate },
      }),
    ).check({});
    const startMs = performance.now();
    await started.server.close({ drainMs: 30_000 });
    await raw.ended;
    expect(performance.now() - startMs).toBeLessThan(800);
  });

  it("refuses callers without a certificate where one is asked for (attack 61)", async () => {
    await using tls = createTls();
    const material = { ...tls.material, clientAuthority: tls.material.certificate };
    await using started = await startServer({ keys: "present", tls: material });
    const call = (nodeOptions: object) =>
      createClient(
        Health,
        createConnectTransport({ baseUrl: started.server.url, httpVersion: "1.1", nodeOptions }),
      ).check({});
    await expect(call({ ca: material.certificate })).rejects.toThrow();
    const own = { ca: material.certificate, cert: material.certificate, key: material.privateKey };
    expect((await call(own)).status).toBe(ServingStatus.SERVING);
  });
});
