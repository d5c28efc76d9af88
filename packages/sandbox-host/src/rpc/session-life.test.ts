import { describe, expect, it } from "@jest/globals";
import { fromConnectError } from "@turnbox/rpc/wire";
import type { Secret } from "@turnbox/core";
import { HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import {
  SessionEventKind,
  SessionService,
  SessionState,
  type WatchSessionsResponse,
} from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { startTestHost, type TestHost } from "../compose.suite.ts";
import { accessTo } from "./client.suite.ts";

function serve({ host }: TestHost) {
  const access = accessTo(host);
  return {
    sessions: (token?: Secret) => access.client(SessionService, token),
    host: access.client(HostService),
    sign: access.sign,
  };
}

const kindOf = ({ kind, session }: WatchSessionsResponse): string =>
  `${SessionEventKind[kind]} ${session?.sessionId ?? ""}`.trim();

describe("WatchSessions", () => {
  it("shows what exists and what happens to it, and lets go when the reader leaves", async () => {
    await using test = await startTestHost();
    const { sessions } = serve(test);
    await test.create({ sessionId: "a" });
    const leave = new AbortController();
    const stream = sessions().watchSessions({}, { signal: leave.signal })[Symbol.asyncIterator]();
    const next = async (): Promise<WatchSessionsResponse> => (await stream.next()).value as WatchSessionsResponse;
    const first = await next();
    expect(kindOf(first)).toBe("EXISTING a");
    expect(first.session).toMatchObject({ state: SessionState.ACTIVE, generation: 1 });
    expect(first.at).toBeDefined();
    await sessions().pauseSession({ sessionId: "a" });
    const paused = await next();
    expect([kindOf(paused), paused.session?.state]).toEqual(["CHANGED a", SessionState.PAUSED]);
    await test.create({ sessionId: "b" });
    expect(kindOf(await next())).toBe("CREATED b");
    await sessions().destroySession({ sessionId: "b" });
    expect(kindOf(await next())).toBe("CHANGED b");
    expect(kindOf(await next())).toBe("DESTROYED b");
    leave.abort();
    await expect(stream.next()).rejects.toThrow();
  });

  it("shows a caller its own tenant and the labels it asked for", async () => {
    await using test = await startTestHost();
    const { sessions, sign } = serve(test);
    await test.create({ sessionId: "mine", tenant: "acme", labels: { team: "red" } });
    await test.create({ sessionId: "plain", tenant: "acme" });
    await test.create({ sessionId: "theirs", tenant: "other", labels: { team: "red" } });
    const leave = new AbortController();
    const selector = { matchLabels: { team: "red" } };
    const stream = sessions(sign()).watchSessions({ selector }, { signal: leave.signal })[Symbol.asyncIterator]();
    expect(kindOf((await stream.next()).value as WatchSessionsResponse)).toBe("EXISTING mine");
    await test.create({ sessionId: "theirs2", tenant: "other", labels: { team: "red" } });
    await test.create({ sessionId: "mine2", tenant: "acme", labels: { team: "red" } });
    expect(kindOf((await stream.next()).value as WatchSessionsResponse)).toBe("CREATED mine2");
    leave.abort();
  });
});

describe("GetSessionStats", () => {
  it("has zeros before anything ran, and tells what runs", async () => {
    await using test = await startTestHost();
    const { sessions } = serve(test);
    const session = await test.create({ sessionId: "a", limits: { memoryBytes: 1 << 30 } });
    expect(await sessions().getSessionStats({ sessionId: "a" })).toMatchObject({
      memoryBytes: 0n,
      memoryLimitBytes: BigInt(1 << 30),
      pids: 0,
      cpuTime: { seconds: 0n, nanos: 0 },
    });
    await test.bash(session, "write /workspace/a.txt hello");
    const stats = await sessions().getSessionStats({ sessionId: "a" });
    expect(stats.memoryBytes).toBeGreaterThan(0n);
    expect(stats.spaceUsedBytes).toBeGreaterThan(0n);
    expect(stats.cpuTime?.nanos).toBeGreaterThan(0);
  });
});

describe("GetStats", () => {
  it("tells of the machine and of the sessions on it", async () => {
    await using test = await startTestHost();
    await test.create();
    const stats = await serve(test).host.getStats({});
    expect(stats).toMatchObject({ sessionCount: 1, activeTools: 0, warmSessions: 0 });
    expect(stats.cpus).toBeGreaterThan(0);
    expect(stats.memoryBytes).toBeGreaterThanOrEqual(stats.memoryAvailableBytes);
    expect(stats.serviceMemoryBytes).toBeGreaterThan(0n);
  });
});

describe("ExtendSession", () => {
  it("moves the end and takes it away", async () => {
    await using test = await startTestHost();
    const { sessions } = serve(test);
    await test.create({ sessionId: "a" });
    const { session } = await sessions().extendSession({ sessionId: "a", ttl: { seconds: 60n } });
    const leftMs = Number(session?.expiresAt?.seconds ?? 0n) * 1000 - Date.now();
    expect(leftMs).toBeGreaterThan(50_000);
    expect(leftMs).toBeLessThanOrEqual(60_000);
    const endless = await sessions().extendSession({ sessionId: "a" });
    expect(endless.session?.expiresAt).toBeUndefined();
    const refused = await sessions()
      .extendSession({ sessionId: "a", ttl: { seconds: 0n } })
      .catch((thrown: unknown) => fromConnectError(thrown).reason);
    expect(refused).toBe("INVALID_ARGUMENT");
  });
});

describe("RepairSession", () => {
  it("brings a failed session back and says what it did", async () => {
    await using test = await startTestHost();
    const { sessions } = serve(test);
    const session = await test.create({ sessionId: "a" });
    await test.bash(session, "write /workspace/a.txt kept");
    await session.commit((row) => ({ ...row, phase: { kind: "failed", message: "broken by the test" } }));
    expect((await sessions().getSession({ sessionId: "a" })).session).toMatchObject({
      state: SessionState.FAILED,
      failure: "broken by the test",
    });
    const repaired = await sessions().repairSession({ sessionId: "a" });
    expect(repaired.session).toMatchObject({ state: SessionState.ACTIVE, generation: 2, failure: "" });
    expect(repaired.actions).toEqual(["ended its container", "raised the generation to 2"]);
    expect((await test.bash(session, "cat /workspace/a.txt")).content).toBe("kept");
  });
});
