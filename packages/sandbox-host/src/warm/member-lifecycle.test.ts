import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import type { CrashPointHook } from "../session/crash-point.ts";
import { until } from "../session/rig.suite.ts";

const WARM = { warmSessions: 2, warmNetworkSessions: 1, warmRefillDelay: 0, warmRefillRate: 1000 };
const CALL = { signal: SIGNAL };
const networkPolicy = {
  allowPublicIngress: false,
  allowOutbound: true,
  allowList: ["example.org"],
  denyList: [],
  required: false,
};

async function startFull(): Promise<TestHost> {
  const test = await startTestHost(WARM);
  await untilReady(test, 3);
  return test;
}
const untilReady = ({ host }: TestHost, count: number): Promise<void> => until(() => host.warm.stats().ready === count);

describe("warm sessions after a restart", () => {
  it.each(["restart", "stopAndStart"] as const)("are there again (%s)", async (way) => {
    const before = await startFull();
    const left = await before.runtime.list(CALL);
    await using after = await before[way]({
      whileDown: async () => {
        const states = await Promise.all(left.map((id) => before.runtime.liveness(id, CALL)));
        expect(new Set(states)).toEqual(new Set([way === "restart" ? "running" : "paused"]));
      },
    });
    await untilReady(after, 3);
    expect(await after.runtime.list(CALL)).toEqual(left);
    expect(after.host.registry.all()).toEqual([]);
    expect([...new Set(after.runtime.anticipated)].toSorted()).toEqual(left);
    for (const more of [{}, { quotaBytes: 1_000_000 }, { networkPolicy }]) {
      const session = await after.create(more);
      expect(left).toContain(session.row.container);
      expect((await after.bash(session, "write a.txt hello")).exitCode).toBe(0);
    }
    expect(after.host.warm.stats()).toMatchObject({ hits: 3, misses: 0 });
  });

  it.each(["restart", "stopAndStart"] as const)("are no sessions of theirs that were handed over (%s)", async (way) => {
    const before = await startFull();
    const { row } = await before.create({ sessionId: "mine" });
    await untilReady(before, 3);
    await using after = await before[way]();
    await untilReady(after, 3);
    expect(after.host.registry.find("mine")?.row).toMatchObject({ token: row.token, container: row.container });
    expect(await after.runtime.list(CALL)).toHaveLength(4);
    expect((await after.create()).row.container).not.toBe(row.container);
  });

  it.each(["handover.claimed", "handover.bound", "handover.committed"] as const)(
    "are a session or gone where a crash came at %s",
    async (point) => {
      const reached = Promise.withResolvers<undefined>();
      const crash: CrashPointHook = async (now) => {
        if (now !== point) return;
        reached.resolve(undefined);
        await new Promise(() => undefined);
      };
      const before = await startTestHost({ ...WARM, warmRefillDelay: 3_600_000 }, { crashPoint: crash });
      await untilReady(before, 3);
      const [member = ""] = before.network.policies.keys();
      const wanted = { sessionId: "mine", idempotencyKey: "k", quotaBytes: 1_000_000, networkPolicy };
      void before.create(wanted);
      await reached.promise;

      await using after = await before.restart();
      await untilReady(after, 3);
      const isMade = point === "handover.committed";
      expect(after.host.registry.find("mine")?.row.container).toBe(isMade ? member : undefined);
      await until(async () => (await after.runtime.list(CALL)).includes(member) === isMade);
      const { row } = await after.create(wanted);
      expect(row.container === member).toBe(isMade);
      expect(row).toMatchObject({ quotaBytes: 1_000_000, networkPolicy });
      expect(after.network.connect(row.container ?? "", "example.org")).toBe("connected");
    },
  );

  it("go where the machine has booted since", async () => {
    const before = await startFull();
    const left = await before.runtime.list(CALL);
    await using after = await before.restart({ bootId: "another" });
    await untilReady(after, 3);
    await until(async () => (await after.runtime.list(CALL)).every((id) => !left.includes(id)));
    await until(async () => (await after.storage.presence(CALL)).length === 3);
  });

  it("go where their sandbox has died, and only those", async () => {
    const before = await startFull();
    const left = await before.runtime.list(CALL);
    const [dead = "", ...alive] = left;
    before.runtime.crash(dead, "lost");
    await using after = await before.restart();
    await untilReady(after, 3);
    expect(await after.runtime.list(CALL)).toEqual(expect.arrayContaining(alive));
    expect(await after.runtime.list(CALL)).not.toContain(dead);
    await until(async () => (await after.storage.presence(CALL)).length === 3);
  });

  it("go where the storage lost their files, or does not have them", async () => {
    const before = await startFull();
    const left = await before.host.records.call("listSessions", null);
    const [lost, absent] = left;
    await using after = await before.restart({
      whileDown: async () => {
        before.storage.loseMounts([{ token: lost?.token ?? "", generation: 1 }]);
        await before.storage.destroySession(absent?.token ?? "", CALL);
      },
    });
    await untilReady(after, 3);
    const now = await after.runtime.list(CALL);
    expect(left.map(({ container }) => now.includes(container ?? ""))).toEqual([false, false, true]);
  });

  it("go where they have lost their network", async () => {
    const before = await startFull();
    const [networked = ""] = before.network.policies.keys();
    await using after = await before.restart({ whileDown: () => before.network.detach(networked, CALL) });
    await untilReady(after, 3);
    expect(await after.runtime.list(CALL)).not.toContain(networked);
  });

  it("go where sessions are made with other bounds now, where there are to be fewer, and where there are to be none", async () => {
    const before = await startFull();
    const left = await before.runtime.list(CALL);
    const other = await before.restart({ config: { defaultMemory: 1024 ** 3 } });
    await untilReady(other, 3);
    const made = await other.runtime.list(CALL);
    expect(made.filter((id) => left.includes(id))).toEqual([]);
    const fewer = await other.restart({ config: { warmSessions: 1 } });
    await untilReady(fewer, 2);
    await until(async () => (await fewer.runtime.list(CALL)).length === 2);
    expect(made).toEqual(expect.arrayContaining([...(await fewer.runtime.list(CALL))]));
    await using none = await fewer.restart({ config: { warmSessions: 0, warmNetworkSessions: 0 } });
    await until(async () => (await none.runtime.list(CALL)).length === 0);
    await until(async () => (await none.storage.presence(CALL)).length === 0);
    expect(await none.host.records.call("listSessions", null)).toEqual([]);
  });

  it("go where their template has another version now", async () => {
    const before = await startFull();
    const left = await before.runtime.list(CALL);
    const busybox = "#!/bin/sh\necho sh\necho busybox\n# another\n";
    await using after = await before.restart({
      whileDown: (directory) => writeFile(join(directory, "busybox"), busybox, { mode: 0o755 }),
    });
    await untilReady(after, 3);
    await until(async () => (await after.runtime.list(CALL)).every((id) => !left.includes(id)));
  });

  it("are not handed over if the pool is released meanwhile", async () => {
    await using test = await startFull();
    const hold = test.storage.faults.holdNext("boundSession");
    const creating = test.create({ quotaBytes: 1_000_000 });
    await hold.entered;
    const left = await test.runtime.list(CALL);
    const releasing = test.host.warm.release();
    hold.release();
    const { row } = await creating;
    await releasing;
    expect(left).not.toContain(row.container);
    expect(test.host.warm.stats()).toMatchObject({ hits: 0, misses: 1 });
  });
});
