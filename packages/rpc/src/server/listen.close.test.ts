import http2 from "node:http2";
import { createClient } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { ServerReflection } from "@turnbox/protocol/grpc/reflection/v1/reflection_pb";
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "@turnbox/protocol/health/v1/health_pb";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { CHECK, openRaw, startServer, until } from "./listen-fixture.suite.ts";

type Started = Awaited<ReturnType<typeof startServer>>;

/** Far longer than a stop without work may take. */
const DRAIN_MS = 30_000;
const PROMPT_MS = 800;

const closeTimeMs = async ({ server }: Started): Promise<number> => {
  const startMs = performance.now();
  await server.close({ drainMs: DRAIN_MS });
  await until(() => server.connections === 0);
  return performance.now() - startMs;
};

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

const WITHOUT_BODY = CHECK.slice(0, -2);

describe("a stop does not wait for a connection without a call under way", () => {
  it.each([
    ["says nothing", ""],
    ["says half a protocol", "PR"],
    ["sends half a header", "POST / HTTP/1.1\r\nX: "],
    ["opens HTTP/2 and no stream", PREFACE],
  ])("not for a connection that %s", async (_what, bytes) => {
    const started = await startServer();
    const raw = openRaw(started.server.port);
    raw.socket.write(bytes, "latin1");
    await until(() => started.server.connections === 1);
    if (bytes === PREFACE) await until(() => raw.received() !== "");
    expect(await closeTimeMs(started)).toBeLessThan(PROMPT_MS);
    await raw.ended;
  });

  it.each([
    ["keeps its connection", ""],
    ["has begun another request", "POST / HTTP/1.1\r\nX: "],
    ["has not sent the body of another request", WITHOUT_BODY],
  ])("not for a peer that was answered and %s", async (_what, bytes) => {
    const started = await startServer();
    const raw = openRaw(started.server.port);
    raw.socket.write(CHECK);
    await until(() => raw.received().includes("SERVING"));
    await new Promise((resolve) => raw.socket.write(bytes, resolve));
    if (bytes === WITHOUT_BODY) await until(() => started.admission.inFlight.reserved === 1);
    expect(await closeTimeMs(started)).toBeLessThan(PROMPT_MS);
    await raw.ended;
  });

  it("not for an HTTP/2 peer that does not send its body, and never closes its side", async () => {
    const started = await startServer();
    const session = http2.connect(started.server.url);
    session.on("error", () => undefined);
    const stream = session.request({
      ":method": "POST",
      ":path": "/grpc.health.v1.Health/Check",
      "content-type": "application/grpc",
    });
    stream.on("error", () => undefined);
    let status: unknown;
    stream.on("trailers", (headers: Record<string, string>) => {
      status = headers["grpc-status"];
    });
    stream.on("response", (headers) => {
      status ??= headers["grpc-status"];
    });
    stream.resume();
    await until(() => started.admission.inFlight.reserved === 1);
    expect(await closeTimeMs(started)).toBeLessThan(PROMPT_MS);
    // unavailable, the code of SHUTTING_DOWN
    await until(() => status === "14");
    session.destroy();
  });

  it.each(["connectHttp1", "connectHttp2", "grpc"] as const)(
    "not for a health watch over %s, which gets the end of the service",
    async (kind) => {
      const started = await startServer();
      const seen: ServingStatus[] = [];
      const watch = (async () => {
        for await (const { status } of createClient(Health, started[kind]).watch({})) seen.push(status);
      })();
      await until(() => seen.length === 1);
      expect(await closeTimeMs(started)).toBeLessThan(PROMPT_MS);
      await watch;
      expect(seen).toEqual([ServingStatus.SERVING, ServingStatus.NOT_SERVING]);
      expect(started.admission.inFlight.stream).toBe(0);
    },
  );

  it("not for a reflection dialogue whose questioner has gone quiet", async () => {
    const started = await startServer();
    const asked = new AbortController();
    const questions = (async function* () {
      yield { messageRequest: { case: "listServices" as const, value: "" } };
      await new Promise((resolve) => asked.signal.addEventListener("abort", resolve, { once: true }));
    })();
    const answers = createClient(ServerReflection, started.grpc)
      .serverReflectionInfo(questions)
      [Symbol.asyncIterator]();
    expect((await answers.next()).done).toBe(false);
    expect(await closeTimeMs(started)).toBeLessThan(PROMPT_MS);
    expect(started.admission.inFlight.stream).toBe(0);
    asked.abort();
    await answers.next().catch(() => undefined);
  });
});

describe("a stop waits for work", () => {
  it("among peers that have none", async () => {
    const started = await startServer();
    const silent = openRaw(started.server.port);
    await until(() => started.server.connections === 1);
    const call = createClient(SessionService, started.grpc).getSession({ sessionId: "slow" });
    await until(() => started.admission.inFlight.unary === 1);
    const closed = closeTimeMs(started);
    expect((await call).session?.sessionId).toBe("slow");
    expect(await closed).toBeLessThan(PROMPT_MS);
    await silent.ended;
  });
});
