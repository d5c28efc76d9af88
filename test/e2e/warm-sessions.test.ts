import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { type Json, startHost, type TestHost } from "../support/host.ts";
import { bash, createSession, destroy, script } from "../support/host-calls.ts";
import { reaches } from "../support/networked-session.ts";
import { makeOutside, type Outside } from "../support/outside.ts";
import { poll } from "../support/process.ts";
import { readRecords } from "../support/records.ts";
import { containerOf, containerPids } from "../support/sentry.ts";

jest.setTimeout(120_000);

const ALLOWED = "192.31.196.73";
const OTHER = "192.31.196.74";
const READY = 3;
const MIB = 1024 * 1024;

let outside: Outside;
let host: TestHost;
beforeAll(async () => {
  outside = await makeOutside([ALLOWED, OTHER]);
  const env = { TURNBOX_WARM_SESSIONS: "2", TURNBOX_WARM_NETWORK_SESSIONS: "1", TURNBOX_WARM_REFILL_DELAY: "1ms" };
  host = await startHost({ env });
});
afterAll(async () => {
  await host[Symbol.asyncDispose]();
  await outside[Symbol.asyncDispose]();
});

const networkPolicy = { allowOutbound: true, allowList: [`${ALLOWED}/32`], required: true };

async function stats(): Promise<{ readonly ready: number; readonly hits: number; readonly misses: number }> {
  const { warmSessions, warmHits, warmMisses } = await host.call("HostService/GetStats");
  return { ready: Number(warmSessions ?? 0), hits: Number(warmHits ?? 0), misses: Number(warmMisses ?? 0) };
}

/** The sandboxes that stand ready, when there are as many as there are to be: container and pid of the sentry. */
async function untilFull(): Promise<ReadonlyMap<string, number>> {
  await poll("the pool to be full", async () => ((await stats()).ready === READY ? true : undefined));
  const rows = readRecords(host.dataDirectory).sessions.filter(({ phase }) => phase.readyIn !== undefined);
  return new Map(rows.map(({ container }) => [container ?? "", containerPids(host, container ?? "").sentry]));
}

/** Makes a session, which has to be one of those that stood ready. */
async function createReady(sessionId: string, more: Json = {}): Promise<void> {
  const [ready, before] = [await untilFull(), await stats()];
  await createSession(host, sessionId, more);
  expect(await stats()).toMatchObject({ hits: before.hits + 1, misses: before.misses });
  const container = containerOf(host, sessionId);
  expect(containerPids(host, container).sentry).toBe(ready.get(container));
}

describe("warm sessions", () => {
  it("are bound by the quota of the create", async () => {
    await createReady("bounded", { quotaBytes: 8 * MIB });
    const flood = await bash(host, "bounded", "head -c 16777216 /dev/urandom > /workspace/big");
    expect(flood.exitCode).not.toBe(0);
    const bytes = Number(await script(host, "bounded", "stat -c %s /workspace/big"));
    expect(bytes).toBeGreaterThan(6 * MIB);
    expect(bytes).toBeLessThan(9 * MIB);
    expect(await script(host, "bounded", "ip -o link | cut -d: -f2")).toBe(" lo\n");
    await destroy(host, "bounded");
  });

  it("get at what the policy of the create allows, and at nothing else", async () => {
    await createReady("networked", { networkPolicy });
    outside.packets();
    expect(await reaches(host, "networked", OTHER)).toBe(false);
    expect(outside.packets()).toEqual([]);
    expect(await reaches(host, "networked", ALLOWED)).toBe(true);
    await destroy(host, "networked");
  });

  it.each([
    ["killed", () => host.kill()],
    ["stopped", () => host.stop()],
  ] as const)("are the same after the host was %s, and are used", async (how, end) => {
    const before = await untilFull();
    await end();
    await host.start();
    expect(await untilFull()).toEqual(before);
    const [plain, networked] = [`plain-${how}`, `networked-${how}`];
    await createReady(plain, { quotaBytes: 64 * MIB });
    expect(await script(host, plain, "echo hello")).toBe("hello\n");
    await createReady(networked, { networkPolicy });
    expect(await reaches(host, networked, OTHER)).toBe(false);
    expect(await reaches(host, networked, ALLOWED)).toBe(true);
    for (const sessionId of [plain, networked]) expect(before.has(containerOf(host, sessionId))).toBe(true);
    expect(await stats()).toMatchObject({ hits: 2, misses: 0 });
  });
});
