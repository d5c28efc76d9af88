import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { startHost, type TestHost } from "../support/host.ts";
import { completeTurn, createSession, fork, health, listSessions, script } from "../support/host-calls.ts";
import { expectConsistent, expectNothingLeft } from "../support/invariants.ts";
import { poll } from "../support/process.ts";
import { IS_FULL, SLACK } from "../support/random.ts";

const SESSIONS = IS_FULL ? 200 : 20;
const RUNNING = 4;

let host: TestHost;
beforeAll(async () => {
  host = await startHost();
}, 120_000);
afterAll(async () => {
  await host[Symbol.asyncDispose]();
}, 300_000);

it(`serves ${SESSIONS} sessions again in 2 s after kill -9 and has them in order in 10 s, with what runs in them`, async () => {
  await createSession(host, "first");
  await script(host, "first", "echo first > /workspace/a");
  await completeTurn(host, "first");
  for (let left = SESSIONS - 1; left > 0; left -= 100) await fork(host, "first", { count: Math.min(left, 100) });
  const ids = (await listSessions(host)).map(({ sessionId }) => sessionId);
  expect(ids).toHaveLength(SESSIONS);
  const running = ids.slice(-RUNNING);
  const ticks = async (sessionId: string): Promise<number> =>
    Number(await script(host, sessionId, "wc -l < /workspace/ticks"));
  for (const sessionId of running) {
    await script(
      host,
      sessionId,
      "cd /workspace; (while :; do echo x >> ticks; sleep 0.1; done) > /dev/null 2>&1 & echo $! > /workspace/pid",
    );
  }
  const generations = new Map((await listSessions(host)).map(({ sessionId, generation }) => [sessionId, generation]));

  await host.kill();
  const begunMs = performance.now();
  const { servedAfterMs } = await host.start();
  const again = await listSessions(host);
  expect(again.map(({ sessionId }) => sessionId)).toEqual(ids);
  const answeredMs = performance.now() - begunMs;
  expect(again.every(({ state }) => state === "SESSION_STATE_ACTIVE")).toBe(true);
  expect((await health(host)).status).toBe("HEALTH_STATUS_HEALTHY");
  await poll("the second reconciliation", async () => ((await reconciliations(host)) === 2 ? true : undefined), 60_000);
  const reconciledMs = performance.now() - begunMs;
  await expectConsistent(host);
  process.stdout.write(
    `restart: ${SESSIONS} sessions, served after ${Math.round(servedAfterMs)} ms, listed after ${Math.round(answeredMs)} ms, ` +
      `reconciled after ${Math.round(reconciledMs)} ms\n`,
  );
  expect(servedAfterMs).toBeLessThan(2_000 * SLACK);
  expect(reconciledMs).toBeLessThan(10_000 * SLACK);

  // Containers were taken over as they are: no new generation, the same processes, and they go on.
  for (const sessionId of running) {
    expect(await script(host, sessionId, "kill -0 $(cat /workspace/pid) && echo alive")).toBe("alive\n");
    const before = await ticks(sessionId);
    await poll("the process to go on", async () => ((await ticks(sessionId)) > before ? true : undefined));
  }
  const now = await listSessions(host);
  expect(new Map(now.map(({ sessionId, generation }) => [sessionId, generation]))).toEqual(generations);
  expect(await script(host, ids[1]!, "cat /workspace/a")).toBe("first\n");
  await expectNothingLeft(host);
}, 900_000);

/** How often the host has told that it is done with what an earlier one left. */
async function reconciliations({ dataDirectory }: TestHost): Promise<number> {
  const log = await readFile(join(dataDirectory, "host.log"), "utf8");
  return log.split("records and storage are reconciled").length - 1;
}
