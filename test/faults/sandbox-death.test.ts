import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { startHost, type TestHost } from "../support/host.ts";
import { bash, createSession, getSession, script } from "../support/host-calls.ts";
import { expectNothingLeft } from "../support/invariants.ts";
import { poll } from "../support/process.ts";
import { SLACK } from "../support/random.ts";
import { sandboxPids } from "../support/sentry.ts";

const MiB = 1024 * 1024;
const NOTICED_MS = 1000;

let host: TestHost;
beforeAll(async () => {
  host = await startHost();
}, 120_000);
afterAll(async () => {
  await expectNothingLeft(host);
  await host[Symbol.asyncDispose]();
}, 120_000);

/** Waits until the session is in another generation than the first; answers how long that took. */
async function nextGeneration(sessionId: string): Promise<number> {
  const begunMs = performance.now();
  const look = async () => ((await getSession(host, sessionId)).generation === 2 ? true : undefined);
  await poll("a new generation", look, NOTICED_MS * SLACK, 20);
  return performance.now() - begunMs;
}

describe("the death of a sandbox, on a real host", () => {
  it.each(["sentry", "gofer"] as const)(
    "is noticed within a second without any call (%s), and the next call goes on with the same files",
    async (part) => {
      const sessionId = `killed-${part}`;
      await createSession(host, sessionId);
      await createSession(host, `${sessionId}-neighbour`);
      await script(host, `${sessionId}-neighbour`, "true");
      await script(host, sessionId, "echo kept > a");
      const running = bash(host, sessionId, "echo begun; sleep 1000");
      await poll(
        "the call to run",
        async () => (await script(host, sessionId, "ps")).includes("sleep 1000") || undefined,
      );
      process.kill(sandboxPids(host, sessionId)[part], "SIGKILL");
      expect(await nextGeneration(sessionId)).toBeLessThan(NOTICED_MS * SLACK);
      expect(await running).toMatchObject({ exitReason: "EXIT_REASON_SANDBOX_LOST" });
      expect(await script(host, sessionId, "cat a; ps | grep -c '[s]leep 1000' || true")).toBe("kept\n0\n");
      expect(await getSession(host, sessionId)).toMatchObject({ generation: 2, state: "SESSION_STATE_ACTIVE" });
      expect(await getSession(host, `${sessionId}-neighbour`)).toMatchObject({ generation: 1 });
    },
    60_000,
  );

  it("for want of memory is reported as such to every call that ran in it, and to its processes", async () => {
    const sessionId = "hungry";
    await createSession(host, sessionId, { resources: { memoryBytes: String(96 * MiB) } });
    await script(host, sessionId, "echo kept > a");
    const launch = { sessionId, binary: "sleep", args: ["1000"] };
    const { process: launched } = await host.call("ProcessService/LaunchProcess", launch);
    const { processId } = launched as { readonly processId: string };
    const calls = [1, 2, 3].map(() => bash(host, sessionId, "sleep 1000"));
    const count = async () => (await script(host, sessionId, "ps | grep -c '[s]leep 1000'")) === "4\n" || undefined;
    await poll("the calls to run", count);
    const hog = bash(host, sessionId, "dd if=/dev/zero of=/dev/null bs=300M count=1; sleep 1000");
    for (const ended of await Promise.all([hog, ...calls]))
      expect(ended).toMatchObject({ exitReason: "EXIT_REASON_OOM", exitCode: 137 });
    await poll("a new generation", async () => (await getSession(host, sessionId)).generation === 2 || undefined);
    const { process: ended } = await host.call("ProcessService/GetProcessStatus", { sessionId, processId });
    expect(JSON.stringify(ended)).toContain("OOM");
    expect(await script(host, sessionId, "cat a")).toBe("kept\n");
  }, 60_000);

  it("is not what a call comes to that goes over its own memory: only that call ends", async () => {
    const sessionId = "frugal";
    await createSession(host, sessionId);
    const neighbour = bash(host, sessionId, "sleep 1; until [ -e done ]; do sleep 0.2; done; echo well");
    const limits = { memoryBytes: String(64 * MiB) };
    const hog = "dd if=/dev/zero of=/dev/null bs=300M count=1";
    const limited = await bash(host, sessionId, `${hog} && echo had it`, { limits });
    expect(limited.content).not.toContain("had it");
    expect([limited.exitReason, limited.exitCode]).toEqual(["EXIT_REASON_EXITED", 1]);
    const raised = await bash(host, sessionId, `ulimit -v unlimited; ${hog} && echo had it`, { limits });
    expect(raised.content).not.toContain("had it");
    expect((await bash(host, sessionId, `${hog} && echo had it`)).content).toContain("had it");
    await script(host, sessionId, "touch done");
    expect(await neighbour).toMatchObject({ content: "well\n", exitCode: 0 });
    expect(await getSession(host, sessionId)).toMatchObject({ generation: 1 });
  }, 60_000);
});
