import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { startHost, type TestHost } from "../support/host.ts";
import { bash, completeTurn, createSession, destroy, getSession, health, script } from "../support/host-calls.ts";
import { expectNothingLeft } from "../support/invariants.ts";
import { poll } from "../support/process.ts";
import { IS_FULL, SLACK } from "../support/random.ts";
import { cpuMsOf } from "../support/sentry.ts";
import { SYSCALL_PROGRAM } from "../support/syscall-program.ts";

const MiB = 1024 * 1024;
const DESTROY_MS = 5000;
const FILES = IS_FULL ? 1_000_000 : 8_000;

let host: TestHost;
beforeAll(async () => {
  host = await startHost();
  await createSession(host, "neighbour");
  await script(host, "neighbour", "echo mine > a");
}, 120_000);
afterAll(async () => {
  await destroy(host, "neighbour");
  await expectNothingLeft(host);
  await host[Symbol.asyncDispose]();
}, 120_000);

let number = 0;
let sessionId: string;
beforeEach(() => {
  number += 1;
  sessionId = `hog-${number}`;
});
/** Whatever a sandbox did, the host is well, its neighbour goes on as it was, and it can be destroyed. */
afterEach(async () => {
  expect(await script(host, "neighbour", "cat a")).toBe("mine\n");
  expect(await getSession(host, "neighbour")).toMatchObject({ generation: 1, state: "SESSION_STATE_ACTIVE" });
  await destroy(host, sessionId);
  expect(await health(host)).toMatchObject({ status: "HEALTH_STATUS_HEALTHY" });
}, 60_000);

/** How long until nothing of the session is there any more. */
async function destroyed(): Promise<number> {
  const begunMs = performance.now();
  await destroy(host, sessionId);
  await poll("the session to be gone", async () => {
    const gone = await host.call("SessionService/GetSession", { sessionId }).then(
      () => false,
      () => true,
    );
    return gone && ((await health(host)).backgroundDestroys ?? []).length === 0 ? true : undefined;
  });
  return performance.now() - begunMs;
}

const BOMBS = { processes: ":() { :|:& }; :; sleep 1000", threads: "/bin/sc t 100000" };

describe("a sandbox that takes all it can get, on a real host", () => {
  it.each(["processes", "threads"] as const)(
    "attack 29: a bomb of %s ends with its limit",
    async (kind) => {
      await createSession(host, sessionId, { resources: { pids: 256, memoryBytes: String(512 * MiB) } });
      const stdin = SYSCALL_PROGRAM.toString("base64");
      await bash(host, sessionId, "cat > /bin/sc && chmod 755 /bin/sc; echo kept > a", { stdin });
      // Below the limit, the same works.
      const few = await bash(host, sessionId, "sc t 20", { limits: { timeout: "2s" } });
      expect(few).toMatchObject({ exitReason: "EXIT_REASON_TIMED_OUT", content: expect.stringMatching(/^20\n/) });
      const bomb = bash(host, sessionId, BOMBS[kind], { limits: { timeout: "20s" } });
      expect(await script(host, "neighbour", "cat a")).toBe("mine\n");
      expect((await bomb).exitReason).toMatch(/SANDBOX_LOST|OOM|TIMED_OUT/);
      expect(await script(host, "neighbour", "cat a")).toBe("mine\n");
      expect(await script(host, sessionId, "cat a")).toBe("kept\n");
      void bash(host, sessionId, BOMBS[kind]).catch(() => undefined);
      expect(await destroyed()).toBeLessThan(DESTROY_MS * SLACK);
    },
    90_000,
  );

  it("attack 30: memory, shared memory and temporary files are bounded, and the error names the cause", async () => {
    await createSession(host, sessionId, {
      resources: { memoryBytes: String(64 * MiB) },
      quotaBytes: String(32 * MiB),
    });
    await script(host, sessionId, "echo kept > a");
    const within = await bash(host, sessionId, "dd if=/dev/zero of=/dev/shm/few bs=1M count=8; rm /dev/shm/few");
    expect(within.exitCode).toBe(0);
    for (const hog of [
      "dd if=/dev/zero of=/dev/null bs=300M count=1",
      "dd if=/dev/zero of=/dev/shm/x bs=1M count=300",
    ]) {
      const ended = await bash(host, sessionId, `${hog}; sleep 1000`, { limits: { timeout: "30s" } });
      expect([hog, ended.exitReason]).toEqual([hog, "EXIT_REASON_OOM"]);
      expect(await script(host, sessionId, "cat a")).toBe("kept\n");
    }
    const full = await bash(host, sessionId, "dd if=/dev/zero of=/tmp/x bs=1M count=300; echo $?; rm /tmp/x");
    expect(full.content).toMatch(/^1\n/);
    expect(await getSession(host, sessionId)).toMatchObject({ generation: 3 });
  }, 90_000);

  it("attack 31: a limit of processor time holds over many threads", async () => {
    await createSession(host, sessionId, { resources: { cpus: 0.3 } });
    const spin = (seconds: number) =>
      `for i in 1 2 3 4; do timeout ${seconds} sh -c 'while :; do :; done' & done; wait`;
    await script(host, sessionId, "true");
    const beforeMs = cpuMsOf(host, sessionId);
    const begunMs = performance.now();
    await bash(host, sessionId, spin(4));
    const share = (cpuMsOf(host, sessionId) - beforeMs) / (performance.now() - begunMs);
    expect(share).toBeLessThan(0.3 * 1.25);
    expect(share).toBeGreaterThan(0.05);
    // Without the limit, one second of the same takes more than the limit would give.
    const freeMs = cpuMsOf(host, "neighbour");
    await bash(host, "neighbour", spin(2));
    expect(cpuMsOf(host, "neighbour") - freeMs).toBeGreaterThan(2000 * 0.3);
  }, 90_000);

  it("attack 32: a session that has filled its space can be sealed, and can free it again", async () => {
    await createSession(host, sessionId, { quotaBytes: String(24 * MiB) });
    const fill = "dd if=/dev/urandom of=/workspace/big bs=1M count=100 2>&1 | tail -1; echo after > /workspace/small";
    expect((await bash(host, sessionId, fill)).content).toMatch(/quota|space/i);
    expect(await completeTurn(host, sessionId)).toMatchObject({ turnNumber: 1 });
    expect(await script(host, sessionId, "rm /workspace/big && echo freed")).toBe("freed\n");
    const again = async () =>
      (await bash(host, sessionId, "echo again > /workspace/small")).exitCode === 0 || undefined;
    await poll("space that was freed to be there", again);
    expect(await completeTurn(host, sessionId)).toMatchObject({ turnNumber: 2 });
  }, 60_000);

  it(
    `attack 33: ${FILES} empty files are the session's own load`,
    async () => {
      await createSession(host, sessionId, { quotaBytes: String(IS_FULL ? 4096 * MiB : 256 * MiB) });
      const make = `mkdir many && cd many && seq 1 ${FILES} | xargs -n 5000 touch; ls | wc -l`;
      const made = bash(host, sessionId, make, { limits: { timeout: "3000s" } });
      expect(await script(host, "neighbour", "cat a")).toBe("mine\n");
      const count = Number((await made).content.trim().split("\n").at(-1));
      expect(count).toBeGreaterThan(IS_FULL ? 1000 : FILES - 1);
      const sealingMs = performance.now();
      expect(await completeTurn(host, sessionId)).toMatchObject({ turnNumber: 1 });
      expect(performance.now() - sealingMs).toBeLessThan(DESTROY_MS * SLACK);
      const page = await host.call("FileService/ListDirectory", { sessionId, path: "/workspace/many" });
      expect((page["entries"] as readonly unknown[]).length).toBeLessThan(FILES);
      expect(await destroyed()).toBeLessThan((IS_FULL ? 12 : 1) * DESTROY_MS * SLACK);
    },
    IS_FULL ? 3_600_000 : 90_000,
  );
});
