import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Refusal, startHost, type TestHost } from "../support/host.ts";
import { createSession, destroy, fork, listSessions, listSnapshots, script } from "../support/host-calls.ts";
import { expectConsistent, expectNothingLeft } from "../support/invariants.ts";
import { createLoad, type Load } from "../support/load.ts";
import { poll, processesWith } from "../support/process.ts";
import { createRandom, IS_FULL, SEED } from "../support/random.ts";
import { startServer } from "../support/server.ts";

const KILLS = IS_FULL ? 200 : 3;
const LANES = ["a", "b", "c"];

describe("a host that is killed at random", () => {
  let host: TestHost;
  beforeAll(async () => {
    host = await startHost();
  }, 120_000);
  afterAll(async () => {
    await host[Symbol.asyncDispose]();
  }, 300_000);

  it(`keeps all it has acknowledged over ${KILLS} kills under load, has nothing twice, and leaves nothing (seed ${SEED})`, async () => {
    const random = createRandom();
    const lanes = LANES.map((prefix, index) => ({ prefix, random: createRandom(SEED + index + 1) }));
    const load = createLoad(host, lanes);
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const enough = load.answered + 4 + Math.floor(random() * 16);
      const soonMs = Math.floor(random() * 300);
      let isOver = false;
      const working = load.run().finally(() => {
        isOver = true;
      });
      await poll("work to be done", () => (isOver || load.answered >= enough ? true : undefined), 120_000);
      await delay(soonMs);
      await Promise.all([host.kill(), working]);
      await host.start();
      await check(host, load);
      // What was cut off may have taken effect or not; it is removed either way, so that the load goes on from what is known.
      for (const sessionId of load.ledger.unsure) await destroy(host, sessionId);
      if (kill % 10 === 0) await checkContents(host, load);
    }
    await checkContents(host, load);
    process.stdout.write(
      `kills: ${KILLS}, ${load.answered} calls answered, ${load.unanswered.length} not, ${load.ledger.kept.size} sessions left\n`,
    );
    await expectConsistent(host);
    await expectNothingLeft(host);
  }, 7_200_000);
});

describe("tools that run when the host is killed", () => {
  it("are ended, never run again, and their calls answer that the outcome is not known", async () => {
    await using host = await startHost();
    const calls = Array.from({ length: IS_FULL ? 20 : 8 }, (_, index) => ({
      sessionId: `s${index % 4}`,
      toolCallId: `call-${index}`,
      toolName: "bash",
      params: { cmd: `echo x >> /workspace/n${index}; sleep 300` },
    }));
    for (const sessionId of new Set(calls.map((call) => call.sessionId))) await createSession(host, sessionId);
    const running = calls.map((call) => host.attempt("ToolService/ExecuteTool", call));
    const counts = async (): Promise<readonly string[]> =>
      await Promise.all(
        calls.map(({ sessionId }, index) =>
          script(host, sessionId, `cat /workspace/n${index} 2>/dev/null | wc -l`).then((count) => count.trim()),
        ),
      );
    const once = calls.map(() => "1");
    await poll("all of them to run", async () => ((await counts()).join() === once.join() ? true : undefined));
    await host.kill();
    expect(await Promise.all(running)).toEqual(calls.map(() => undefined));
    await host.start();
    for (const call of calls) {
      const again = host.call("ToolService/ExecuteTool", call);
      await expect(again).rejects.toMatchObject({ reason: "OUTCOME_UNKNOWN" });
      expect(await script(host, call.sessionId, "ps | grep -c '[s]leep 300' || true")).toBe("0\n");
    }
    expect(await counts()).toEqual(once);
    expect((await listSessions(host)).every(({ generation }) => generation === 1)).toBe(true);
    await expectNothingLeft(host);
  }, 120_000);
});

/** A storage that is too busy to answer says so; what it has is still there. */
async function patiently<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  return await poll("the storage to answer", () =>
    ask().catch((thrown: unknown) => {
      if (thrown instanceof Refusal && thrown.reason === "STORAGE_UNAVAILABLE") return undefined;
      throw thrown;
    }),
  );
}

async function check(host: TestHost, { ledger }: Load): Promise<void> {
  const sessions = await patiently(() => listSessions(host));
  const ids = sessions.map(({ sessionId }) => sessionId);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toEqual(expect.arrayContaining([...ledger.kept.keys()]));
  const living = sessions.filter(({ state }) => state !== "SESSION_STATE_DESTROYING");
  expect(living.filter(({ sessionId }) => ledger.destroyed.has(sessionId))).toEqual([]);
  expect(living.filter(({ sessionId }) => !ledger.kept.has(sessionId) && !ledger.unsure.has(sessionId))).toEqual([]);
  for (const { sessionId, state } of living) {
    if (state === "SESSION_STATE_PAUSED") await host.call("SessionService/ResumeSession", { sessionId });
    else expect([sessionId, state]).toEqual([sessionId, "SESSION_STATE_ACTIVE"]);
  }
  for (const [sessionId, sealed] of ledger.kept) {
    const snapshots = await patiently(() => listSnapshots(host, sessionId));
    const seen = snapshots.map(({ snapshotId }) => snapshotId);
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toEqual(expect.arrayContaining([...sealed.keys()]));
    const numbers = snapshots.flatMap(({ turnNumber }) => turnNumber ?? []).filter((number) => number > 0);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    const byId = new Map(snapshots.map((snapshot) => [snapshot.snapshotId, snapshot.turnNumber ?? 0]));
    for (const [snapshotId, { turnNumber }] of sealed) expect(byId.get(snapshotId)).toBe(turnNumber);
  }
  await expectConsistent(host);
}

/** The newest snapshots of some sessions hold what was sealed in them. */
async function checkContents(host: TestHost, { ledger }: Load): Promise<void> {
  const newest = [...ledger.kept].flatMap(([sessionId, sealed]) =>
    [...sealed].slice(-1).map(([snapshotId, { content }]) => ({ sessionId, snapshotId, content })),
  );
  for (const { sessionId, snapshotId, content } of newest.slice(0, 5)) {
    const { children } = await fork(host, sessionId, { snapshotId });
    const child = children[0]!.sessionId;
    const seen = await script(host, child, "cat /workspace/state 2>/dev/null || true");
    expect([sessionId, seen.trimEnd()]).toEqual([sessionId, content]);
    await destroy(host, child);
  }
}

describe("an orchestrator", () => {
  it("starts a host again that was killed, and its sandboxes are as they were", async () => {
    await using server = await startServer();
    const id = String((await server.json("create", "--name", "victim"))["sandboxId"]);
    await server.cli("exec", id, "--no-stdin", "--", "sh", "-c", "echo kept > a; sleep 1000 & echo $! > pid");
    const turn = await server.json("turn", id);
    const host = processesWith(server.home).find((line) => line.includes("turnbox-sandbox-host.mjs serve"));
    process.kill(Number(host?.split(" ")[0]), "SIGKILL");
    const seen = await poll(
      "the sandbox to be served again",
      async () => {
        const ran = await server.cli(
          "exec",
          id,
          "--no-stdin",
          "--",
          "sh",
          "-c",
          "cat a; kill -0 $(cat pid) && echo alive",
        );
        return ran.exitCode === 0 ? ran.stdout : undefined;
      },
      60_000,
    );
    expect(seen).toBe("kept\nalive\n");
    expect(await server.json("turn", id)).toMatchObject({ snapshotId: turn["snapshotId"], unchanged: true });
    expect((await server.cli("rm", id)).exitCode).toBe(0);
  }, 120_000);
});
