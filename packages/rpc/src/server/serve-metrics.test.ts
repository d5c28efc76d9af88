import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createClient } from "@connectrpc/connect";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { Secret, systemClock } from "@turnbox/core";
import { createMetrics } from "../metrics/metrics.ts";
import { createRpcMeter, RPC_METRICS } from "../metrics/rpc-metrics.ts";
import { access, startServer, until } from "./listen-fixture.suite.ts";

type Server = Awaited<ReturnType<typeof startServer>>;

describe("GET /metrics", () => {
  let server: Server;
  beforeEach(async () => {
    const metrics = createMetrics(RPC_METRICS);
    server = await startServer({
      rpc: { meter: createRpcMeter(metrics, systemClock) },
      metrics: { verifier: access.verifier, render: metrics.render },
    });
  });
  afterEach(async () => {
    await server[Symbol.asyncDispose]();
  });
  const ask = (token: string | Secret, init: RequestInit = {}): Promise<Response> =>
    fetch(`${server.server.url}/metrics`, {
      headers: token === "" ? {} : { authorization: `Bearer ${token instanceof Secret ? token.reveal() : token}` },
      ...init,
    });
  const page = async (): Promise<string> => await (await ask(access.homeToken)).text();

  it("is for the home's token and for one that may read the host", async () => {
    const response = await ask(access.homeToken);
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      "text/plain; version=0.0.4; charset=utf-8",
    ]);
    expect(await response.text()).toContain("# TYPE turnbox_rpc_requests_total counter");
    expect((await ask(access.sign({ tenant: "*", verbs: ["read"] }))).status).toBe(200);
  });

  it("is refused to everyone else", async () => {
    const without = await ask("");
    expect([without.status, without.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    expect((await ask("wrong")).status).toBe(401);
    expect((await ask(access.sign({ tenant: "t1", verbs: ["read"] }))).status).toBe(403);
    expect((await ask(access.sign({ tenant: "*", verbs: ["execute"] }))).status).toBe(403);
    expect((await ask(access.homeToken, { method: "POST", body: "x" })).status).toBe(405);
    expect((await fetch(`${server.server.url}/metrics/x`)).status).toBe(404);
  });

  it("counts calls by method and by what their callers were answered", async () => {
    const sessions = createClient(SessionService, server.connectHttp2);
    await sessions.getSession({ sessionId: "a" });
    await sessions.getSession({ sessionId: "gone" }).catch(() => undefined);
    await fetch(`${server.server.url}/${SessionService.typeName}/GetSession`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    for await (const _ of createClient(ToolService, server.grpc).executeToolStream({ call: {} }));
    const method = `method="${SessionService.typeName}/GetSession"`;
    const lines = (await page()).split("\n");
    expect(lines).toEqual(
      expect.arrayContaining([
        `turnbox_rpc_requests_total{${method},code="ok"} 1`,
        `turnbox_rpc_requests_total{${method},code="not_found"} 1`,
        `turnbox_rpc_requests_total{${method},code="unauthenticated"} 1`,
        `turnbox_rpc_requests_total{method="${ToolService.typeName}/ExecuteToolStream",code="ok"} 1`,
        `turnbox_rpc_duration_seconds_count{${method}} 2`,
        'turnbox_rpc_in_flight{kind="stream"} 0',
      ]),
    );
  });

  it("counts a stream until its reader has gone", async () => {
    const end = new AbortController();
    const stream = createClient(ToolService, server.grpc).executeToolStream(
      { call: { toolCallId: "endless" } },
      { signal: end.signal },
    );
    const reading = (async () => {
      for await (const _ of stream);
    })();
    await until(async () => (await page()).includes('turnbox_rpc_in_flight{kind="stream"} 1'));
    end.abort();
    await expect(reading).rejects.toThrow();
    await until(async () => (await page()).includes('turnbox_rpc_in_flight{kind="stream"} 0'));
    expect(await page()).toContain(`${ToolService.typeName}/ExecuteToolStream",code="canceled"} 1`);
  });
});
