import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { FileService } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { startHost, type TestHost } from "../support/host.ts";
import { createSession, destroy, script } from "../support/host-calls.ts";
import { hostClient } from "../support/host-client.ts";
import { expectNothingLeft } from "../support/invariants.ts";
import { poll, TIMEOUT_FACTOR } from "../support/process.ts";
import { IS_FULL, SLACK } from "../support/random.ts";

/** Within this a session that asks for little is answered, whatever its neighbours hold. */
const PROMPT_MS = 2000 * SLACK * TIMEOUT_FACTOR;
const ROUNDS = IS_FULL ? 20 : 2;
/** In the whole form more than the host has for all. */
const CONNECTIONS = IS_FULL ? 140 : 20;
const HOGS = ["hog-a", "hog-b"];

let host: TestHost;
let pid: number;
/** An address of the server in each session, and the token for it. */
const servers = new Map<string, { readonly url: URL; readonly token: string }>();

async function serve(sessionId: string): Promise<void> {
  const launch = { sessionId, binary: "httpd", args: ["-f", "-p", "8080", "-h", "/workspace"] };
  await host.call("ProcessService/LaunchProcess", launch);
  const access = await host.call("SessionService/CreatePortAccess", { sessionId, port: 8080 });
  servers.set(sessionId, { url: new URL(String(access["url"])), token: String(access["token"]) });
}

beforeAll(async () => {
  host = await startHost();
  ({ pid } = host);
  for (const sessionId of [...HOGS, "quiet"]) {
    await createSession(host, sessionId);
    await script(host, sessionId, "echo mine > a; truncate -s 256M big; mkdir d; printf '%040d!' 0 | tr 0 a > bait");
    await serve(sessionId);
  }
  await poll("the quiet session's server", async () => ((await quiet.port()) ? true : undefined));
}, 120_000);
afterAll(async () => {
  for (const sessionId of [...HOGS, "quiet"]) await destroy(host, sessionId);
  await expectNothingLeft(host);
  await host[Symbol.asyncDispose]();
}, 120_000);

/** What the attackers hold; let go after each test. */
const held: (() => void)[] = [];
afterEach(async () => {
  for (const letGo of held.splice(0)) letGo();
  expect(host.pid).toBe(pid);
  expect(await quiet.read_file()).toBe(true);
});

const tool = async (toolName: string, params: Readonly<Record<string, unknown>>, sessionId = "quiet") =>
  await host.call("ToolService/ExecuteTool", { sessionId, toolCallId: randomUUID(), toolName, params });

/** What a session that does little asks for; each answers whether it was served. */
const quiet = {
  read_file: async () => String((await tool("read_file", { path: "a" }))["content"]).includes("mine"),
  write_file: async () => (await tool("write_file", { path: "b", content: "text" }))["isError"] !== true,
  stat: async () => (await host.call("FileService/Stat", { sessionId: "quiet", path: "a" }))["entry"] !== undefined,
  readFile: async () => {
    for await (const { entry } of hostClient(host, FileService).readFile({ sessionId: "quiet", path: "a" }))
      if (entry !== undefined) return true;
    return false;
  },
  watch: async () => {
    const leave = new AbortController();
    const events = hostClient(host, FileService).watchDirectory(
      { sessionId: "quiet", path: "d" },
      { signal: leave.signal },
    );
    const first = await events[Symbol.asyncIterator]().next();
    leave.abort();
    return first.done !== true;
  },
  port: async () => {
    const { url, token } = servers.get("quiet") ?? { url: "", token: "" };
    const answer = await fetch(new URL("/a", url), { headers: { "turnbox-port-token": token } });
    return answer.status === 200;
  },
};

/** The calls of the quiet session that failed or were not answered promptly. */
async function unserved(): Promise<readonly string[]> {
  const late: string[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, ask] of Object.entries(quiet)) {
      const limit = AbortSignal.timeout(PROMPT_MS);
      const asked = ask().catch(String);
      const outcome = await Promise.race([asked, once(limit, "abort").then(() => "late")]);
      if (outcome !== true) late.push(`${name}: ${String(outcome)}`);
    }
  }
  return late;
}

/** Begins something that does not end by itself. */
function hold(begin: (signal: AbortSignal) => Promise<unknown>): void {
  const over = new AbortController();
  held.push(() => {
    over.abort();
  });
  begin(over.signal).catch(() => undefined);
}

const stuck = new Promise<never>(() => undefined);

describe("two sessions that hold all they can, beside a third one", () => {
  it.each([
    ["a pattern that an engine for it takes exponentially long with", "(a+)+$"],
    ["a pattern that looks around itself", "(?=a)(a+)+$"],
    ["a pattern that refers back", "(?:(a+)\\1*)+$"],
  ])(
    "leave it its files while they search with %s",
    async (_, pattern) => {
      for (const sessionId of HOGS)
        for (let count = 0; count < 8; count += 1)
          hold(async () => await tool("grep", { pattern, path: "bait" }, sessionId));
      expect(await unserved()).toEqual([]);
    },
    120_000,
  );

  it("leave it its transfers while they take downloads and never read them", async () => {
    for (const sessionId of HOGS) {
      const client = hostClient(host, FileService);
      for (let count = 0; count < 12; count += 1) {
        hold(async (signal) => {
          for await (const _piece of client.readFile({ sessionId, path: "big" }, { signal })) await stuck;
        });
      }
    }
    expect(await unserved()).toEqual([]);
  }, 120_000);

  it("leave it its transfers while they begin uploads and never send", async () => {
    for (const sessionId of HOGS) {
      const client = hostClient(host, FileService);
      for (let count = 0; count < 12; count += 1) {
        async function* body() {
          yield { part: { case: "header", value: { sessionId, path: `up-${count}` } } as const };
          await stuck;
        }
        hold(async (signal) => await client.writeFile(body(), { signal }));
      }
    }
    expect(await unserved()).toEqual([]);
  }, 120_000);

  it("leave it a watch while they watch as much as they may", async () => {
    for (const sessionId of HOGS) {
      const client = hostClient(host, FileService);
      for (let count = 0; count < 20; count += 1) {
        hold(async (signal) => {
          for await (const _event of client.watchDirectory({ sessionId, path: "d" }, { signal })) continue;
        });
      }
    }
    expect(await unserved()).toEqual([]);
  }, 120_000);

  it("leave it its port while they keep connections to their own ones open", async () => {
    const sockets: Socket[] = [];
    let refused = 0;
    held.push(() => {
      for (const socket of sockets) socket.destroy();
    });
    for (const sessionId of HOGS) {
      const { url, token } = servers.get(sessionId) ?? { url: new URL("http://none"), token: "" };
      for (let count = 0; count < CONNECTIONS; count += 1) {
        const socket = connect({ host: url.hostname, port: Number(url.port) });
        socket.on("error", () => undefined);
        socket.once("data", () => (refused += 1));
        sockets.push(socket);
        // The head is whole and the body never comes: the connection inside stays open.
        socket.write(`POST /a HTTP/1.1\r\nhost: x\r\nturnbox-port-token: ${token}\r\ncontent-length: 1000\r\n\r\n`);
      }
    }
    if (IS_FULL) await poll("a connection to be refused", () => (refused > 0 ? true : undefined), 60_000);
    expect(await unserved()).toEqual([]);
  }, 120_000);
});
