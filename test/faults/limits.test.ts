import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Json, startHost, type TestHost } from "../support/host.ts";
import {
  bash,
  completeTurn,
  createSession,
  destroy,
  fork,
  getSession,
  health,
  listSessions,
  listSnapshots,
  rollBack,
  script,
} from "../support/host-calls.ts";
import { expectConsistent, expectNothingLeft } from "../support/invariants.ts";
import { poll } from "../support/process.ts";
import { IS_FULL } from "../support/random.ts";

const MiB = 1024 * 1024;

describe("a session", () => {
  let host: TestHost;
  beforeAll(async () => {
    host = await startHost();
  }, 120_000);
  afterAll(async () => {
    await host[Symbol.asyncDispose]();
  }, 120_000);

  it("refuses names and ids of snapshots that cannot be, and goes on as it was (D1, D9)", async () => {
    const sessionId = "named";
    await createSession(host, sessionId);
    await script(host, sessionId, "echo here > /workspace/a");
    const before = await getSession(host, sessionId);
    for (const name of ["x".repeat(257), "a\nb", "\0", "\u001b[2J"]) {
      const asked = host.call("SnapshotService/CreateSnapshot", { sessionId, name });
      await expect(asked).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    }
    for (const snapshotId of ["", "nope", "@", "../x", "-rf", "x".repeat(5000), `${sessionId}@s1`]) {
      for (const method of ["RollbackSession", "DeleteSnapshot"]) {
        const asked = host.call(`SnapshotService/${method}`, { sessionId, snapshotId });
        await expect(asked).rejects.toMatchObject({
          reason: expect.stringMatching(/^(SNAPSHOT_NOT_FOUND|INVALID_ARGUMENT)$/),
        });
      }
    }
    // What is awkward for zfs is a name like any other.
    for (const name of ["a@b", "../../etc", "-r", "%", "ä 🎈", "$(reboot)", ""])
      await host.call("SnapshotService/CreateSnapshot", { sessionId, name });
    expect(await listSnapshots(host, sessionId)).toHaveLength(7);
    expect(await getSession(host, sessionId)).toMatchObject({ state: before.state, generation: before.generation });
    expect(await script(host, sessionId, "cat /workspace/a")).toBe("here\n");
    await destroy(host, sessionId);
  }, 60_000);

  it("is destroyed once by many callers, while it works and beside others (D2)", async () => {
    await createSession(host, "victim");
    await createSession(host, "neighbour");
    await script(host, "neighbour", "echo kept > /workspace/a");
    await script(host, "victim", "echo x > /workspace/a");
    await completeTurn(host, "victim");
    const working = [
      bash(host, "victim", "sleep 60"),
      completeTurn(host, "victim"),
      host.call("SessionService/ForkSession", { sessionId: "victim", count: 2 }),
    ].map((work) => work.catch((thrown: unknown) => thrown));
    await poll("the tool to run", async () =>
      ((await getSession(host, "victim")) as unknown as { activeTools?: number }).activeTools === 1 ? true : undefined,
    );
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => {
        const body = { sessionId: "victim", ...(index % 2 === 0 ? {} : { idempotencyKey: `k${index}` }) };
        return host.call("SessionService/DestroySession", body).then(
          () => "done",
          (thrown: unknown) => (thrown as { reason?: string }).reason,
        );
      }),
    );
    expect(answers.filter((answer) => answer !== "done" && answer !== "SESSION_NOT_FOUND")).toEqual([]);
    expect(answers).toContain("done");
    await Promise.all(working);
    await poll("the victim to be gone", async () =>
      (await listSessions(host)).some(({ sessionId }) => sessionId === "victim") ? undefined : true,
    );
    expect(await script(host, "neighbour", "cat /workspace/a")).toBe("kept\n");
    await expectNothingLeft(host);
  }, 120_000);

  it("is not paused over a running tool, or kills it if asked to, and runs none while paused (D3)", async () => {
    const sessionId = "paused";
    await createSession(host, sessionId);
    await script(host, sessionId, "true");
    const slow = (): Promise<Json | Error> =>
      host
        .call("ToolService/ExecuteTool", {
          sessionId,
          toolCallId: randomUUID(),
          toolName: "bash",
          params: { cmd: "while :; do date +%s%N > /workspace/now; sleep 0.05; done" },
        })
        .catch((thrown: unknown) => thrown as Error);
    const pause = (more: Json): Promise<Json> => host.call("SessionService/PauseSession", { sessionId, ...more });
    const running = slow();
    await poll("the tool to run", async () =>
      (await bash(host, sessionId, "cat /workspace/now")).exitCode === 0 ? true : undefined,
    );

    const begunMs = performance.now();
    await expect(pause({ tools: "TOOLS_POLICY_REFUSE" })).rejects.toMatchObject({ reason: "TOOLS_IN_FLIGHT" });
    expect(performance.now() - begunMs).toBeLessThan(5_000);
    const waiting = pause({ tools: "TOOLS_POLICY_WAIT", drainTimeout: "2s" }).catch((thrown: unknown) => thrown);
    await poll("the gate to close", async () =>
      (await bash(host, sessionId, "true").catch((thrown: unknown) => (thrown as { reason?: string }).reason)) ===
      "SESSION_PAUSED"
        ? true
        : undefined,
    );
    expect(await waiting).toMatchObject({ reason: "TOOLS_IN_FLIGHT" });
    expect(await getSession(host, sessionId)).toMatchObject({ state: "SESSION_STATE_ACTIVE" });
    expect(await script(host, sessionId, "echo open again")).toBe("open again\n");

    expect(await pause({ tools: "TOOLS_POLICY_KILL", drainTimeout: "0.2s" })).toMatchObject({
      session: { state: "SESSION_STATE_PAUSED" },
    });
    expect(await running).toMatchObject({ exitReason: "EXIT_REASON_KILLED" });
    await expect(bash(host, sessionId, "true")).rejects.toMatchObject({ reason: "SESSION_PAUSED" });
    await host.call("SessionService/ResumeSession", { sessionId });
    const stamp = await script(host, sessionId, "cat /workspace/now");
    expect(await script(host, sessionId, "sleep 0.3; cat /workspace/now")).toBe(stamp);
    await destroy(host, sessionId);
  }, 60_000);

  it("that is full tells the agent so, lets it delete, and goes on", async () => {
    const sessionId = "full";
    await createSession(host, sessionId, { quotaBytes: String(24 * MiB) });
    const fill = await bash(host, sessionId, "dd if=/dev/urandom of=/workspace/big bs=64k count=1600");
    expect(fill.content).toMatch(/[Qq]uota exceeded|No space left/);
    // The snapshot holds the blocks; the agent's own allowance is free again all the same.
    await completeTurn(host, sessionId);
    expect(await bash(host, sessionId, "rm /workspace/big")).toMatchObject({ exitCode: 0 });
    const written = async (): Promise<true | undefined> =>
      (await bash(host, sessionId, "dd if=/dev/urandom of=/workspace/b bs=64k count=150")).exitCode === 0
        ? true
        : undefined;
    await poll("the space to be free", written);
    await completeTurn(host, sessionId);
    await destroy(host, sessionId);
  }, 120_000);

  it("whose snapshots use up its space takes no further one, says so, and takes them again after a delete", async () => {
    const sessionId = "hoarder";
    await createSession(host, sessionId, { quotaBytes: String(16 * MiB) });
    const turns: string[] = [];
    const turn = async (): Promise<unknown> => {
      await bash(host, sessionId, "head -c 14000000 /dev/urandom > /workspace/big; sync");
      return await completeTurn(host, sessionId).then(
        ({ snapshotId }) => void turns.push(snapshotId),
        (thrown: unknown) => thrown,
      );
    };
    const refused = await poll("the space of snapshots to be used up", async () => (await turn()) ?? undefined, 60_000);
    expect(refused).toMatchObject({ reason: "SNAPSHOT_SPACE_EXHAUSTED" });
    expect(turns.length).toBeGreaterThan(1);
    // The agent works on, and the turns that were answered are there.
    expect(await script(host, sessionId, "rm /workspace/big && ls /workspace")).toBe("");
    expect((await listSnapshots(host, sessionId)).map(({ snapshotId }) => snapshotId)).toEqual(turns);
    for (const snapshotId of turns.slice(0, 2))
      await host.call("SnapshotService/DeleteSnapshot", { sessionId, snapshotId });
    await script(host, sessionId, "echo small > /workspace/a");
    expect(await poll("a turn to be sealed", () => completeTurn(host, sessionId).catch(() => undefined))).toMatchObject(
      {
        turnNumber: turns.length + 1,
      },
    );
    await expectConsistent(host);
    await expectNothingLeft(host);
  }, 180_000);
});

describe("a pool", () => {
  it("that is critical takes no new session, snapshot or fork; exec, reads and destroys go on, and it recovers (D12)", async () => {
    await using host = await startHost({
      env: {
        TURNBOX_POOL_SIZE: "1GiB",
        TURNBOX_POOL_SPACE_WARN_THRESHOLD: "0.1",
        TURNBOX_POOL_SPACE_CRIT_THRESHOLD: "0.15",
      },
    });
    await createSession(host, "small");
    await script(host, "small", "echo small > /workspace/a");
    const { snapshotId } = await completeTurn(host, "small");
    await createSession(host, "large");
    const status = (wanted: string) => async (): Promise<true | undefined> =>
      (await health(host)).status === wanted ? true : undefined;
    const fill = async (megabytes: number): Promise<void> => {
      await script(host, "large", `head -c ${megabytes}000000 /dev/urandom > /workspace/$RANDOM$RANDOM; sync`);
    };
    await fill(120);
    await poll("the warning", status("HEALTH_STATUS_DEGRADED"));
    await completeTurn(host, "large");
    await fill(60);
    await poll("the critical state", status("HEALTH_STATUS_UNHEALTHY"));

    await script(host, "small", "echo more > /workspace/a");
    for (const [method, body] of [
      ["SessionService/CreateSession", { sessionId: "late" }],
      ["SessionService/ForkSession", { sessionId: "small" }],
      ["SnapshotService/TurnComplete", { sessionId: "small" }],
      ["SnapshotService/CreateSnapshot", { sessionId: "small" }],
      ["SnapshotService/RollbackSession", { sessionId: "small", snapshotId }],
    ] as const) {
      await expect(host.call(method, body)).rejects.toMatchObject({ reason: "POOL_FULL" });
    }
    expect(await script(host, "small", "cat /workspace/a; echo works > /workspace/b")).toBe("more\n");
    expect(await listSnapshots(host, "small")).toHaveLength(1);
    expect((await listSessions(host)).map(({ sessionId }) => sessionId)).toEqual(["small", "large"]);
    await destroy(host, "large");
    await poll("the pool to have room again", status("HEALTH_STATUS_HEALTHY"), 60_000);
    expect(await completeTurn(host, "small")).toMatchObject({ turnNumber: 2 });
    await rollBack(host, "small", snapshotId);
    await fork(host, "small");
    await expectNothingLeft(host);
  }, 240_000);

  const end = async (): Promise<void> => {
    await using host = await startHost({ env: { TURNBOX_POOL_SIZE: "1GiB" } });
    await createSession(host, "greedy");
    await createSession(host, "other");
    await script(host, "other", "echo kept > /workspace/a");
    const params = { cmd: "dd if=/dev/urandom of=/workspace/big bs=1M count=2000", timeout_ms: 280_000 };
    const filled = await bash(host, "greedy", "", { params });
    expect(filled.content).toMatch(/No space left|[Qq]uota exceeded/);
    expect((await health(host)).status).toBe("HEALTH_STATUS_UNHEALTHY");
    expect(await script(host, "other", "cat /workspace/a")).toBe("kept\n");
    await destroy(host, "greedy");
    await poll("the pool to have room again", async () =>
      (await health(host)).status === "HEALTH_STATUS_HEALTHY" ? true : undefined,
    );
    await script(host, "other", "echo more > /workspace/a");
    expect(await completeTurn(host, "other")).toMatchObject({ turnNumber: 1 });
    await expectNothingLeft(host);
  };
  // Writing a whole pool takes a minute.
  if (IS_FULL)
    it("is never written to its end: the agent gets an error in time, and a destroy makes room", end, 400_000);
});
