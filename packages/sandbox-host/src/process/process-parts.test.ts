import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, jest } from "@jest/globals";
import { createManualClock, type ManualClock } from "@turnbox/core/testing";
import { SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import type { Session } from "../session/session.ts";
import type { LaunchedProcess } from "./launched-process.ts";

jest.setTimeout(30_000);

const CALL = { signal: SIGNAL };
const SECOND_MS = 1000;
const IDLE_MS = 60 * SECOND_MS;
const POLL_MS = 2;

const launch = ({ host }: TestHost, session: Session, port = 0): Promise<LaunchedProcess> =>
  host.launchProcess(
    session,
    {
      idempotencyKey: "",
      payload: "",
      expectedGeneration: undefined,
      binary: "sleep",
      args: [],
      env: {},
      cwd: "/workspace",
      terminal: null,
      port,
    },
    CALL,
  );

/** Lets time pass second by second, each with its sweep: what a sweep writes down is written before the next one. */
async function pass({ host }: TestHost, clock: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += SECOND_MS) {
    await clock.advance(SECOND_MS);
    await host.records.call("listIdle", null);
  }
}

/**
 * Records are written by a thread, for which the clock of the test does not count: it may take a few seconds more. The clock goes no
 * faster than that thread's does meanwhile, so that a busy machine does not make a session idle.
 */
async function until(clock: ManualClock, condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error("the condition did not come true in time");
    await delay(POLL_MS);
    await clock.advance(POLL_MS);
  }
}

const idle = { ttlMs: null, idleTimeoutMs: IDLE_MS, onTimeout: "pause" } as const;

describe("a session with an idle timeout", () => {
  it("is not idle while a launched process runs, and begins to be when it ends", async () => {
    const clock = createManualClock();
    await using test = await startTestHost({}, { clock });
    const session = await test.create({ sessionId: "works", time: idle });
    const process = await launch(test, session);
    await pass(test, clock, 2 * IDLE_MS);
    expect(session.row.phase.kind).toBe("active");
    let isKilled = false;
    void test.host.killProcess(session, process, { signal: 9 }, CALL).then(() => (isKilled = true));
    await until(clock, () => isKilled);
    await pass(test, clock, IDLE_MS - 2 * SECOND_MS);
    expect(session.row.phase.kind).toBe("active");
    await pass(test, clock, 2 * SECOND_MS);
    await until(clock, () => session.row.phase.kind !== "active");
    expect(session.row.phase).toMatchObject({ kind: "paused", cause: "timeout" });
  });

  it("is idle while the server that runs in it has no connection", async () => {
    const clock = createManualClock();
    await using test = await startTestHost({}, { clock });
    const session = await test.create({ sessionId: "serves", time: idle });
    await launch(test, session, 8080);
    await pass(test, clock, IDLE_MS);
    await until(clock, () => session.row.phase.kind !== "active");
    expect(session.row.phase).toMatchObject({ kind: "paused", cause: "timeout" });
  });
});
