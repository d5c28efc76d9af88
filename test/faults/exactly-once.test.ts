import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { fromConnectError } from "@turnbox/rpc/wire";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { startHost, type TestHost } from "../support/host.ts";
import { completeTurn, createSession, rollBack, script } from "../support/host-calls.ts";
import { expectNothingLeft } from "../support/invariants.ts";
import { poll } from "../support/process.ts";
import { createRandom, IS_FULL, SEED } from "../support/random.ts";
import { hostClient } from "../support/host-client.ts";

const CALLS = IS_FULL ? 10_000 : 80;
const KILLS = IS_FULL ? 40 : 3;
const LANES = ["a", "b", "c", "d"];
/** How long a call is asked for again: a host that starts on a busy machine takes its time. */
const PATIENCE_MS = 120_000;

/** How a call came out in the end. */
type Outcome = "done" | "unknown";

/** One client for each start of the host. */
function createClients(host: TestHost): { now(): Client<typeof ToolService> } {
  let current: { readonly url: string; readonly client: Client<typeof ToolService> } | undefined;
  return {
    now: () => {
      if (current?.url !== host.url) current = { url: host.url, client: hostClient(host, ToolService) };
      return current.client;
    },
  };
}

describe("tool calls with duplicates, disconnects and kills of the host", () => {
  let host: TestHost;
  beforeAll(async () => {
    host = await startHost();
  }, 120_000);
  afterAll(async () => {
    await host[Symbol.asyncDispose]();
  }, 300_000);

  it(`have their effect exactly once or are reported unknown: ${CALLS} calls, ${KILLS} kills (seed ${SEED})`, async () => {
    for (const sessionId of LANES) await createSession(host, sessionId);
    const outcomes = new Map(LANES.map((sessionId) => [sessionId, new Map<string, Outcome>()]));
    const perLane = Math.ceil(CALLS / LANES.length);
    const clients = createClients(host);
    let settled = 0;
    let attempts = 0;

    /** One attempt, which the caller may leave early; undefined where no answer came. */
    const attempt = async (
      sessionId: string,
      id: string,
      leaveAfterMs: number | undefined,
    ): Promise<Outcome | undefined> => {
      attempts += 1;
      const signal = AbortSignal.timeout(leaveAfterMs ?? 60_000);
      const call = { sessionId, toolCallId: id, toolName: "bash", params: { cmd: `echo ${id} >> /workspace/log` } };
      try {
        const { isError, exitReason } = await clients.now().executeTool(call, { signal });
        // The sandbox outlives the host, so a call ends by itself or not at all.
        expect([id, isError, exitReason]).toEqual([id, false, 1]);
        return "done";
      } catch (thrown) {
        if (!(thrown instanceof ConnectError)) throw thrown;
        if (thrown.code === Code.Unavailable || thrown.code === Code.Canceled) return undefined;
        if (thrown.code === Code.DeadlineExceeded || thrown.code === Code.Internal) return undefined;
        const { reason } = fromConnectError(thrown);
        if (reason === "OUTCOME_UNKNOWN") return "unknown";
        throw thrown;
      }
    };

    const lane = async (sessionId: string, random: () => number): Promise<void> => {
      const mine = outcomes.get(sessionId);
      for (let number = 0; number < perLane; number += 1) {
        const id = `${sessionId}-${number}`;
        const untilMs = performance.now() + PATIENCE_MS;
        while (mine?.has(id) !== true) {
          if (performance.now() > untilMs) throw new Error(`${id} has no answer`);
          const copies = random() < 0.3 ? 2 : 1;
          const leaveAfterMs = random() < 0.2 ? Math.floor(random() * 60) : undefined;
          const seen = await Promise.all(Array.from({ length: copies }, () => attempt(sessionId, id, leaveAfterMs)));
          const answers = [...new Set(seen.filter((answer) => answer !== undefined))];
          expect(answers.length).toBeLessThanOrEqual(1);
          if (answers[0] !== undefined) mine?.set(id, answers[0]);
          else await delay(50);
        }
        settled += 1;
      }
    };

    const lanes = LANES.map((sessionId, index) => lane(sessionId, createRandom(SEED + index + 1)));
    const total = perLane * LANES.length;
    const killing = async (): Promise<void> => {
      for (let kill = 1; kill <= KILLS; kill += 1) {
        await poll("calls to be made", () => (settled >= (total * kill) / (KILLS + 1) ? true : undefined), 600_000, 5);
        await host.kill();
        await host.start();
      }
    };
    await Promise.all([...lanes, killing()]);

    let unknown = 0;
    for (const [sessionId, mine] of outcomes) {
      const lines = (await script(host, sessionId, "cat /workspace/log")).trim().split("\n");
      const counts = new Map<string, number>();
      for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
      expect([...counts.keys()].filter((id) => !mine.has(id))).toEqual([]);
      for (const [id, outcome] of mine) {
        if (outcome === "done") expect([id, counts.get(id)]).toEqual([id, 1]);
        else expect([0, 1]).toContain(counts.get(id) ?? 0);
      }
      unknown += [...mine.values()].filter((outcome) => outcome === "unknown").length;
    }
    process.stdout.write(`exactly once: ${total} calls, ${attempts} attempts, ${KILLS} kills, ${unknown} unknown\n`);
  }, 3_600_000);

  it("know after a kill which of them a rollback discarded", async () => {
    const sessionId = "back";
    await createSession(host, sessionId);
    const run = (id: string) =>
      hostClient(host, ToolService).executeTool({
        sessionId,
        toolCallId: id,
        toolName: "bash",
        params: { cmd: `echo ${id} >> log` },
      });
    const reason = (id: string) =>
      run(id).then(
        ({ replayed }) => (replayed ? "replayed" : "ran"),
        (thrown: unknown) => fromConnectError(thrown).reason,
      );
    await run("before");
    const { snapshotId } = await completeTurn(host, sessionId);
    await run("after");
    const undo = await rollBack(host, sessionId, snapshotId);
    await host.kill();
    await host.start();
    expect([await reason("before"), await reason("after")]).toEqual(["replayed", "CALL_ROLLED_BACK"]);
    await rollBack(host, sessionId, undo);
    expect([await reason("before"), await reason("after")]).toEqual(["replayed", "replayed"]);
    expect(await script(host, sessionId, "cat log")).toBe("before\nafter\n");
    await expectNothingLeft(host);
  }, 120_000);
});
