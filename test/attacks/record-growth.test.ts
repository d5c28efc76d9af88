import { readdir, stat } from "node:fs/promises";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Json, Refusal, startHost, type TestHost } from "../support/host.ts";
import {
  completeTurn,
  createSession,
  destroy,
  fork,
  getSession,
  health,
  listSessions,
  script,
} from "../support/host-calls.ts";
import { expectNothingLeft } from "../support/invariants.ts";
import { poll } from "../support/process.ts";
import { IS_FULL } from "../support/random.ts";

const MiB = 1024 * 1024;
const CALLS = IS_FULL ? 48 : 12;
const STREAM_BYTES = 4 * MiB;
/** What the host may keep of a session's results in this test. */
const RESULT_BYTES = 16 * MiB;
/** The database without results and its log, with room for what is between two sweeps. */
const DATABASE_BYTES = 12 * MiB;
const NULS = `head -c ${STREAM_BYTES} /dev/zero; head -c ${STREAM_BYTES} /dev/zero >&2`;

const CHILDREN = IS_FULL ? 100 : 12;
const ENVIRONMENT_BYTES = 256 * 1024;

/** Variables that take so many bytes, names and values. */
function environment(bytes: number): Readonly<Record<string, string>> {
  const count = Math.ceil(bytes / (60 * 1024));
  const names = Array.from({ length: count }, (_, index) => `V${String(index).padStart(3, "0")}`);
  const share = Math.floor(bytes / count) - 4;
  const last = share + bytes - count * (share + 4);
  return Object.fromEntries(names.map((name, index) => [name, "x".repeat(index === count - 1 ? last : share)]));
}

let host: TestHost;
let pid: number;
beforeAll(async () => {
  host = await startHost({ env: { TURNBOX_TOOL_RESULT_SESSION: String(RESULT_BYTES) } });
  pid = host.pid;
}, 120_000);
afterAll(async () => {
  expect(host.pid).toBe(pid);
  await expectNothingLeft(host);
  await host[Symbol.asyncDispose]();
}, 120_000);

/** What the records take on the disk: the database, its log, and the files of results. */
async function recordBytes(): Promise<number> {
  const database = ["host.db", "host.db-wal"].map((name) => join(host.dataDirectory, name));
  const results = join(host.dataDirectory, "tool-results");
  const files = (await readdir(results).catch(() => [])).map((name) => join(results, name));
  const sizes = await Promise.all(
    [...database, ...files].map((path) =>
      stat(path).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

const call = (sessionId: string, toolCallId: string, cmd: string) =>
  host.call("ToolService/ExecuteTool", {
    sessionId,
    toolCallId,
    toolName: "bash",
    params: { cmd },
    limits: { outputBytes: String(STREAM_BYTES) },
  });

const bytesOf = (count: unknown, field: "totalBytes" | "truncatedBytes"): number =>
  Number((count as Record<string, string> | undefined)?.[field] ?? 0);

describe("output that is stored, on a real host", () => {
  it(
    `${CALLS} results of NUL bytes are answered, take bounded space, run once, and leave with their sandbox`,
    async () => {
      await createSession(host, "flood");
      await call("flood", "warm", "true");
      let most = 0;
      let refused = 0;
      for (let index = 0; index < CALLS; index += 1) {
        const answer = await call("flood", `c${index}`, `echo x >> /workspace/ran; ${NULS}`).catch((): Json => {
          refused += 1;
          return {};
        });
        const kept = bytesOf(answer["stdout"], "totalBytes") - bytesOf(answer["stdout"], "truncatedBytes");
        if (refused === 0) expect(String(answer["content"])).toContain("\0".repeat(Math.min(kept, 1000)));
        most = Math.max(most, await recordBytes());
      }
      expect(refused).toBe(0);
      expect(most).toBeLessThan(RESULT_BYTES + DATABASE_BYTES);
      // The oldest has lost its output, and is known all the same; the newest has all of it.
      expect(await call("flood", "c0", `echo x >> /workspace/ran; ${NULS}`)).toMatchObject({
        replayed: true,
        contentDropped: true,
        exitCode: 0,
        stdout: { totalBytes: String(STREAM_BYTES), truncatedBytes: String(STREAM_BYTES) },
      });
      const last = await call("flood", `c${CALLS - 1}`, `echo x >> /workspace/ran; ${NULS}`);
      expect(last["contentDropped"]).toBeUndefined();
      expect(String(last["content"]).length).toBeGreaterThan(MiB);
      expect(await call("flood", "count", "wc -l < /workspace/ran")).toMatchObject({ content: `${CALLS}\n` });
      await destroy(host, "flood");
      await poll("the space to be given back", async () => ((await recordBytes()) < 8 * MiB ? true : undefined));
      expect(await health(host)).toMatchObject({ status: "HEALTH_STATUS_HEALTHY" });
    },
    IS_FULL ? 300_000 : 90_000,
  );
});

/** Sessions that are not being destroyed. */
async function present(): Promise<readonly string[]> {
  const sessions = await listSessions(host);
  return sessions.filter(({ state }) => state !== "SESSION_STATE_DESTROYING").map(({ sessionId }) => sessionId);
}

/** How the host refuses; undefined if it does not. */
async function refusalOf(method: string, body: Json): Promise<Refusal | undefined> {
  return await host.call(method, body).then(
    () => undefined,
    (thrown: unknown) => {
      if (thrown instanceof Refusal) return thrown;
      throw thrown;
    },
  );
}

describe("environments, on a real host", () => {
  it("are refused above 256 KiB in all, in a create, a fork, a call and a launch", async () => {
    await createSession(host, "small");
    const large = environment(ENVIRONMENT_BYTES + 1);
    const huge = environment(15 * MiB);
    const tries: readonly (readonly [string, Json])[] = [
      ["SessionService/CreateSession", { sessionId: "huge", env: huge }],
      ["SessionService/CreateSession", { sessionId: "huge", env: large }],
      ["SessionService/ForkSession", { sessionId: "small", env: large }],
      [
        "ToolService/ExecuteTool",
        { sessionId: "small", toolCallId: "e", toolName: "bash", params: { cmd: "true", env: large } },
      ],
      ["ProcessService/LaunchProcess", { sessionId: "small", binary: "/bin/true", env: large }],
    ];
    for (const [method, body] of tries) {
      const refusal = await refusalOf(method, body);
      expect([method, refusal?.reason.toLowerCase(), refusal?.message]).toEqual([
        method,
        "invalid_argument",
        // The largest one is refused as a request before its environment is looked at.
        expect.stringMatching(body["env"] === huge ? /request: must have at most / : /env: /),
      ]);
    }
    expect(await present()).toEqual(["small"]);
    await destroy(host, "small");
  }, 60_000);

  it(
    `of ${ENVIRONMENT_BYTES} bytes are stored once for a session and its ${CHILDREN} forks, not with each turn, and hold up no start`,
    async () => {
      const env = environment(ENVIRONMENT_BYTES);
      await createSession(host, "parent", { env });
      expect(await script(host, "parent", "env | wc -c")).toMatch(/^26\d{4}\n$/);
      const beforeBytes = await recordBytes();
      const { children } = await fork(host, "parent", { count: CHILDREN });
      for (let turn = 0; turn < 5; turn += 1) {
        await script(host, "parent", `echo ${turn} > /workspace/turn`);
        await completeTurn(host, "parent");
      }
      expect(await recordBytes()).toBeLessThan(beforeBytes + 8 * MiB);
      await host.stop();
      const { servedAfterMs } = await host.start();
      pid = host.pid;
      expect(servedAfterMs).toBeLessThan(60_000);
      const [child] = children;
      expect(await script(host, child?.sessionId ?? "", 'printf %s "$V000" | wc -c')).toBe(`${env["V000"]?.length}\n`);
      for (const { sessionId } of children) await destroy(host, sessionId);
      await destroy(host, "parent");
    },
    IS_FULL ? 600_000 : 120_000,
  );
});

describe("ceilings, on a real host", () => {
  it("refuse more than the machine has by the field's name, and change nothing", async () => {
    await createSession(host, "base");
    const over: readonly (readonly [string, Json])[] = [
      ["resources.cpus", { resources: { cpus: availableParallelism() + 1 } }],
      ["resources.memory_bytes", { resources: { memoryBytes: String(totalmem() + MiB) } }],
      ["resources.pids", { resources: { pids: 4097 } }],
      ["quota_bytes", { quotaBytes: String(2 ** 50) }],
    ];
    for (const [field, more] of over) {
      const created = await refusalOf("SessionService/CreateSession", { sessionId: "over", ...more });
      expect([field, created?.message]).toEqual([field, expect.stringContaining(`${field}: must be at most `)]);
      if (field === "quota_bytes") continue;
      const forked = await refusalOf("SessionService/ForkSession", { sessionId: "base", ...more });
      expect([field, forked?.message]).toEqual([field, expect.stringContaining(`${field}: must be at most `)]);
    }
    expect(await present()).toEqual(["base"]);
    await destroy(host, "base");
  }, 60_000);

  it("that an operator has set hold for sessions that name nothing, and for forks of those made before", async () => {
    await createSession(host, "before", { resources: { pids: 2000 } });
    await host.stop();
    await host.start({ TURNBOX_MAX_PIDS: "500", TURNBOX_MAX_CPUS: "1", TURNBOX_MAX_TTL: "1h" });
    pid = host.pid;
    const bounded = { resources: expect.objectContaining({ pids: 500, cpus: 1 }), expiresAt: expect.any(String) };
    await createSession(host, "after");
    expect(await getSession(host, "after")).toMatchObject(bounded);
    const { children } = await fork(host, "before");
    expect(children[0]).toMatchObject(bounded);
    const refused = await refusalOf("SessionService/ExtendSession", { sessionId: "after", ttl: "3601s" });
    expect(refused?.message).toContain("ttl: must be at most 3600 s");
    for (const sessionId of await present()) await destroy(host, sessionId);
  }, 90_000);
});

describe("a data directory whose disk is down to its reserve, on a real host", () => {
  it("takes no call that changes something, and reads and destroys go on", async () => {
    await createSession(host, "kept");
    await script(host, "kept", "echo mine > /workspace/a");
    await host.stop();
    await host.start({ TURNBOX_DATA_RESERVE: "500TiB" });
    pid = host.pid;
    const tool = (toolName: string, params: Json) =>
      refusalOf("ToolService/ExecuteTool", { sessionId: "kept", toolCallId: toolName, toolName, params });
    const refused = [
      await tool("bash", { cmd: "echo x > /workspace/b" }),
      await refusalOf("SessionService/CreateSession", { sessionId: "more" }),
      await refusalOf("SnapshotService/TurnComplete", { sessionId: "kept" }),
      await refusalOf("ProcessService/LaunchProcess", { sessionId: "kept", binary: "/bin/true" }),
    ];
    expect(refused.map((refusal) => refusal?.reason)).toEqual(refused.map(() => "DATA_DISK_FULL"));
    expect(await tool("read_file", { path: "/workspace/a" })).toBeUndefined();
    expect(await health(host)).toMatchObject({
      status: "HEALTH_STATUS_UNHEALTHY",
      errors: [expect.stringContaining("the disk of the data directory has ")],
    });
    await destroy(host, "kept");
  }, 60_000);
});
