import { describe, expect, it } from "@jest/globals";
import { systemClock } from "@turnbox/core";
import type { Removals } from "../lifecycle/remove.ts";
import type { HuskRow } from "../record/row.ts";
import { CALL, createRig, type Rig } from "../session/rig.suite.ts";
import type { StorageStatus } from "../storage/storage.ts";
import { DataSpace } from "./data-space.ts";
import { Health } from "./health.ts";

const pool = (more: Partial<StorageStatus> = {}): StorageStatus => ({
  state: "online",
  detail: "ONLINE",
  sizeBytes: 100,
  usedBytes: 1,
  availableBytes: 99,
  ...more,
});
const removals: Pick<Removals, "pending"> = { pending: () => [] };
const huskOf = (token: string): HuskRow => ({ token, sessionId: token, tenant: "default", sinceMs: 1 });

const ample = new DataSpace({ directory: "/", clock: systemClock, reserveBytes: 0 });

function createHealthIn(rig: Rig, husks: readonly HuskRow[] = [], dataSpace: DataSpace = ample) {
  return new Health({
    ...rig,
    dataSpace,
    removals,
    husks: { all: () => husks },
    warnThreshold: 0.85,
    critThreshold: 0.95,
  });
}

describe("health", () => {
  it("counts every pool state but online and degraded as unhealthy, and makes nothing new then (D12)", async () => {
    await using rig = await createRig();
    for (const detail of ["OFFLINE", "UNAVAIL", "REMOVED", "SUSPENDED", "FAULTED", "ANYTHING"]) {
      rig.storage.setStatus(pool({ state: "unavailable", detail }));
      const health = createHealthIn(rig);
      expect(await health.report()).toMatchObject({ grade: "unhealthy", errors: [`the pool is ${detail}`] });
      const asked = expect(health.assertRoom(CALL)).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      await rig.clock.advance(10_000);
      await asked;
    }
  });

  it("lets callers wait while a storage that has died is opened again, and no longer than their signal", async () => {
    await using rig = await createRig();
    rig.storage.setStatus(pool({ state: "unavailable", detail: "daemon-not-running" }));
    const health = createHealthIn(rig);
    const asked = health.assertRoom(CALL);
    const left = new AbortController();
    const impatient = expect(health.assertRoom({ signal: left.signal })).rejects.toThrow("enough");
    await rig.clock.advance(4_000);
    left.abort(new Error("enough"));
    await impatient;
    rig.storage.setStatus(pool());
    await rig.clock.advance(1_000);
    await asked;
  });

  it("is degraded at the warning, takes nothing new at the critical threshold, to the byte (D12)", async () => {
    await using rig = await createRig();
    const at = async (usedBytes: number) => {
      rig.storage.setStatus(pool({ usedBytes }));
      const health = createHealthIn(rig);
      const room = await health.assertRoom(CALL).then(
        () => "room",
        (thrown: unknown) => (thrown as { readonly reason: string }).reason,
      );
      return [(await health.report()).grade, room];
    };
    expect(await at(84)).toEqual(["healthy", "room"]);
    expect(await at(85)).toEqual(["degraded", "room"]);
    expect(await at(94)).toEqual(["degraded", "room"]);
    expect(await at(95)).toEqual(["unhealthy", "POOL_FULL"]);
  });

  it("is degraded with a degraded pool, which takes new sessions", async () => {
    await using rig = await createRig();
    rig.storage.setStatus(pool({ state: "degraded", detail: "DEGRADED" }));
    const health = createHealthIn(rig);
    expect((await health.report()).grade).toBe("degraded");
    await health.assertRoom(CALL);
  });

  it("reports a storage that does not answer", async () => {
    await using rig = await createRig();
    rig.storage.faults.failNext("status", { error: new Error("no answer") });
    expect(await createHealthIn(rig).report()).toMatchObject({ grade: "unhealthy", storage: null });
  });

  it("reports husks and failed sessions in words, and stays healthy", async () => {
    await using rig = await createRig();
    await rig.add({ phase: { kind: "failed", message: "x" } });
    await rig.add();
    const one = await createHealthIn(rig, [huskOf("a")]).report();
    expect(one).toMatchObject({ grade: "healthy", husks: 1, failedSessions: 1, sessionCount: 2 });
    expect(one.errors).toEqual(["1 session has failed and can be repaired", "1 destroyed session waits for its forks"]);
    expect((await createHealthIn(rig, [huskOf("a"), huskOf("b")]).report()).errors).toContain(
      "2 destroyed sessions wait for their forks",
    );
  });

  it("is degraded while the pool has sessions without a record", async () => {
    await using rig = await createRig();
    const health = createHealthIn(rig);
    health.quarantine(["lost"]);
    expect(await health.report()).toMatchObject({
      grade: "degraded",
      quarantined: ["lost"],
      errors: ["1 session in the pool has no record"],
    });
  });

  it("reports the fragmentation of the pool if it is known", async () => {
    await using rig = await createRig();
    rig.storage.setStatus(pool({ fragmentationPercent: 7 }));
    expect((await createHealthIn(rig).report()).storage?.fragmentationPercent).toBe(7);
  });
});
