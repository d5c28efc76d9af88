import { request } from "node:http";
import { afterEach, describe, expect, it } from "@jest/globals";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Secret } from "@turnbox/client";
import { systemClock } from "@turnbox/client/internal";
import { createManualClock, type World } from "@turnbox/client/fake";
import { MADE, newMcpWorld } from "@turnbox/client/fake";
import { createSpec } from "../mcp-fixture.suite.ts";
import { createMcpSession } from "../mcp-session.ts";
import { type HttpSpec, type McpListener, serveHttp } from "./serve-http.ts";

const TOKEN = "a-token-of-this-test";
const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

async function listen(world: World, more: Partial<HttpSpec> = {}): Promise<McpListener> {
  const spec = createSpec(world);
  const listener = await serveHttp({
    createSession: (sessionId) => createMcpSession(spec, sessionId),
    host: "127.0.0.1",
    port: 0,
    token: new Secret(TOKEN),
    maxSessions: 2,
    idleMs: 60_000,
    clock: systemClock,
    onProblem: () => undefined,
    ...more,
  });
  open.push(listener);
  return listener;
}

async function connect({ url }: McpListener): Promise<{ client: Client; transport: StreamableHTTPClientTransport }> {
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { Authorization: `Bearer ${TOKEN}` } },
  });
  const client = new Client({ name: "test", version: "0" });
  await client.connect(transport);
  open.push({ [Symbol.asyncDispose]: () => client.close() });
  return { client, transport };
}

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "0" } },
};

interface Raw {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** A request with headers that a browser or `fetch` does not allow to be set. */
async function post(url: string, message: object, headers: Readonly<Record<string, string>> = {}): Promise<Raw> {
  return await new Promise((resolve, reject) => {
    const sent = request(
      url,
      {
        method: "POST",
        headers: {
          Authorization: `Bearer ${TOKEN}`,
          "Content-Type": "application/json",
          Accept: "application/json, text/event-stream",
          ...headers,
        },
      },
      (response) => {
        let body = "";
        response.on("data", (chunk: Buffer) => (body += chunk.toString()));
        response.on("end", () => {
          resolve({ status: response.statusCode ?? 0, body, headers: response.headers });
        });
      },
    );
    sent.on("error", reject);
    sent.end(JSON.stringify(message));
  });
}

describe("the door", () => {
  it("opens with the token only", async () => {
    const { url } = await listen(newMcpWorld());
    const without = await post(url, INITIALIZE, { Authorization: "" });
    expect(without.status).toBe(401);
    expect(without.headers["www-authenticate"]).toContain("Bearer");
    for (const wrong of [`Bearer ${TOKEN}x`, "Bearer", `Basic ${TOKEN}`, `Bearer ${TOKEN.slice(0, -1)}`])
      expect((await post(url, INITIALIZE, { Authorization: wrong })).status).toBe(401);
    expect((await post(url, INITIALIZE)).status).toBe(200);
  });

  it("stays shut for pages that reach it under another name, or from elsewhere", async () => {
    const { url } = await listen(newMcpWorld());
    const { port } = new URL(url);
    for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1", "127.0.0.1:1"])
      expect((await post(url, INITIALIZE, { Host: host })).status).toBe(403);
    for (const origin of ["http://evil.example", "null", `http://localhost.evil.example:${port}`, "http://127.0.0.1:1"])
      expect((await post(url, INITIALIZE, { Origin: origin })).status).toBe(403);
    expect(
      (await post(url, INITIALIZE, { Host: `localhost:${port}`, Origin: `http://localhost:${port}` })).status,
    ).toBe(200);
  });

  it("leads to one place", async () => {
    const { url } = await listen(newMcpWorld());
    expect((await post(new URL("/other", url).href, INITIALIZE)).status).toBe(404);
    expect((await post(url, INITIALIZE, { "Mcp-Session-Id": "unknown" })).status).toBe(404);
    const got = await fetch(url, { headers: { Authorization: `Bearer ${TOKEN}`, Accept: "text/event-stream" } });
    expect(got.status).toBe(400);
  });

  it("says that the port is taken", async () => {
    const { url } = await listen(newMcpWorld());
    await expect(listen(newMcpWorld(), { port: Number(new URL(url).port) })).rejects.toMatchObject({
      reason: "PORT_IN_USE",
    });
  });
});

describe("sessions over HTTP", () => {
  it("have a sandbox each, and end it", async () => {
    const world = newMcpWorld();
    const listener = await listen(world);
    const [first, second] = [await connect(listener), await connect(listener)];
    expect(first.transport.sessionId).not.toBe(second.transport.sessionId);
    await first.client.callTool({ name: "bash", arguments: { cmd: "a" } });
    await second.client.callTool({ name: "bash", arguments: { cmd: "b" } });
    expect(world.created).toHaveLength(2);
    await first.transport.terminateSession();
    await eventually(() => world.destroyed.length === 1);
    await listener[Symbol.asyncDispose]();
    expect(world.destroyed).toEqual([MADE, MADE]);
  });

  it("are bounded; what is no initialization takes no place", async () => {
    const listener = await listen(newMcpWorld());
    for (let tries = 0; tries < 5; tries += 1) {
      const refused = await post(listener.url, { jsonrpc: "2.0", id: 1, method: "tools/list" });
      expect(refused.status).toBe(400);
    }
    const [first] = [await connect(listener), await connect(listener)];
    const third = await post(listener.url, INITIALIZE);
    expect(third.status).toBe(503);
    expect(third.headers["retry-after"]).toBe("30");
    await first.transport.terminateSession();
    await eventually(async () => (await post(listener.url, INITIALIZE)).status === 200);
  });

  it("end when their client stays away", async () => {
    const world = newMcpWorld();
    const clock = createManualClock();
    const listener = await listen(world, { clock });
    const answer = await post(listener.url, INITIALIZE);
    const sessionId = String(answer.headers["mcp-session-id"]);
    const session = { "Mcp-Session-Id": sessionId, "Mcp-Protocol-Version": "2025-06-18" };
    const list = { jsonrpc: "2.0", id: 2, method: "tools/list" };
    await clock.advance(45_000);
    expect((await post(listener.url, list, session)).status).toBe(200);
    await clock.advance(45_000);
    expect((await post(listener.url, list, session)).status).toBe(200);
    await clock.advance(80_000);
    await eventually(() => world.destroyed.length === 1);
    expect((await post(listener.url, list, session)).status).toBe(404);
  });

  it("make one call of a request that is sent twice", async () => {
    const world = newMcpWorld();
    const { url } = await listen(world);
    const answer = await post(url, INITIALIZE);
    const session = {
      "Mcp-Session-Id": String(answer.headers["mcp-session-id"]),
      "Mcp-Protocol-Version": "2025-06-18",
    };
    const call = { jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "bash", arguments: { cmd: "x" } } };
    for (const _ of [1, 2]) expect((await post(url, call, session)).body).toContain('"id":7');
    const ids = world.executed.map(({ toolCallId }) => toolCallId);
    expect(ids).toHaveLength(2);
    // The sandbox-host runs an id once.
    expect(ids[0]).toBe(ids[1]);
    await post(url, { ...call, id: 8 }, session);
    expect(world.executed.at(-1)?.toolCallId).not.toBe(ids[0]);
  });
});

async function eventually(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 5000;
  while (!(await isSo())) {
    if (performance.now() > deadlineMs) throw new Error(`not within 5 s: ${isSo.toString()}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
