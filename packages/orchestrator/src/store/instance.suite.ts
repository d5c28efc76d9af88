import { describe, expect, it } from "@jest/globals";
import type { DrainPlan, InstanceRow } from "./store.ts";
import type { StoreUnderTest } from "./store-under-test.suite.ts";

const CALL = { signal: new AbortController().signal };
const DRAIN: DrainPlan = { reason: "operator", sinceMs: 5, deadlineMs: 9, sessions: "keep" };

const row = (instanceId: string, changes: Partial<InstanceRow> = {}): InstanceRow => ({
  instanceId,
  admission: "open",
  labels: { zone: "1" },
  createdAtMs: 1,
  image: "image-1",
  drain: undefined,
  goal: "running",
  hasAnswered: true,
  version: 0,
  ...changes,
});

/** The contract of a store's instances and of the fence around them. */
export function instanceSuite(name: string, open: () => Promise<StoreUnderTest>): void {
  const create = async () => (await open()).store;
  describe(`instances of Store: ${name}`, () => {
    it("keeps instances with everything said about them, ordered by id, and raises their version", async () => {
      await using store = await create();
      expect(await store.putInstance(row("b"), CALL)).toBe("put");
      expect(await store.putInstance(row("a"), CALL)).toBe("put");
      const changed = row("b", { admission: "cordoned", drain: DRAIN, goal: "stopped", image: "", version: 1 });
      expect(await store.putInstance(changed, CALL)).toBe("put");
      expect(await store.listInstances(CALL)).toEqual([row("a", { version: 1 }), { ...changed, version: 2 }]);
      expect(await store.putInstance(row("b", { goal: "terminated", version: 2 }), CALL)).toBe("put");
      expect((await store.listInstances(CALL))[1]).toEqual(row("b", { goal: "terminated", version: 3 }));
    });

    it("takes an instance out, also twice", async () => {
      await using store = await create();
      await store.putInstance(row("a"), CALL);
      await store.deleteInstance("a", CALL);
      await store.deleteInstance("a", CALL);
      expect(await store.listInstances(CALL)).toEqual([]);
    });

    it("takes an instance out with the sandboxes that it held, whose names are free then", async () => {
      await using store = await create();
      const sandbox = { tenant: "t", labels: {}, instanceId: undefined, phase: "creating", createdAtMs: 1 } as const;
      await store.putInstance(row("a"), CALL);
      for (const [sessionId, instanceId] of [
        ["s1", "a"],
        ["s2", "b"],
      ] as const) {
        await store.beginCreate({ row: { ...sandbox, sessionId, name: `on-${instanceId}` } }, CALL);
        await store.placeSandbox({ sessionId, instanceId, from: undefined }, CALL);
      }
      await store.deleteInstance("a", CALL);
      expect(await store.getSandbox("s1", CALL)).toBeUndefined();
      expect((await store.getSandbox("s2", CALL))?.instanceId).toBe("b");
      expect(await store.beginCreate({ row: { ...sandbox, sessionId: "s3", name: "on-a" } }, CALL)).toEqual({
        kind: "reserved",
      });
    });

    it("does not write over what somebody else has changed", async () => {
      await using store = await create();
      await store.putInstance(row("a"), CALL);
      await store.putInstance(row("a", { admission: "cordoned", version: 1 }), CALL);
      expect(await store.putInstance(row("a", { drain: DRAIN, version: 1 }), CALL)).toBe("changed");
      expect(await store.putInstance(row("a", { goal: "stopped" }), CALL)).toBe("changed");
      expect(await store.listInstances(CALL)).toEqual([row("a", { admission: "cordoned", version: 2 })]);
    });

    it("does not bring an instance back that was taken out", async () => {
      await using store = await create();
      await store.putInstance(row("a"), CALL);
      await store.deleteInstance("a", CALL);
      expect(await store.putInstance(row("a", { version: 1 }), CALL)).toBe("changed");
      expect(await store.listInstances(CALL)).toEqual([]);
    });

    it("answers the same put twice with the same, and does it once", async () => {
      await using store = await create();
      for (let time = 0; time < 2; time++) expect(await store.putInstance(row("a"), CALL)).toBe("put");
      const drained = row("a", { drain: DRAIN, version: 1 });
      for (let time = 0; time < 2; time++) expect(await store.putInstance(drained, CALL)).toBe("put");
      expect(await store.listInstances(CALL)).toEqual([{ ...drained, version: 2 }]);
    });

    it("lets one of many that change the same version through", async () => {
      await using store = await create();
      await store.putInstance(row("a"), CALL);
      const puts = Array.from({ length: 20 }, (_, index) =>
        store.putInstance(row("a", { image: `image-${String(index)}x`, version: 1 }), CALL),
      );
      expect((await Promise.all(puts)).filter((answer) => answer === "put")).toHaveLength(1);
    });

    it("refuses the writes of a lease once a later one was given, and changes nothing (fault 32)", async () => {
      await using store = await create();
      const first = await store.acquireLease({ holder: "a", ttlMs: 10_000 }, CALL);
      if (first === undefined) throw new Error("the lease is not free");
      const former = { ...CALL, epoch: first.epoch };
      expect(await store.putInstance(row("i"), former)).toBe("put");
      await store.releaseLease(first, CALL);
      expect(await store.putInstance(row("j"), former)).toBe("put");
      const second = await store.acquireLease({ holder: "b", ttlMs: 10_000 }, CALL);
      const stale = { reason: "EPOCH_STALE" };
      await expect(store.putInstance(row("i", { goal: "terminated", version: 1 }), former)).rejects.toMatchObject(
        stale,
      );
      await expect(store.deleteInstance("i", former)).rejects.toMatchObject(stale);
      expect((await store.listInstances(CALL))[0]).toEqual(row("i", { version: 1 }));
      const present = { ...CALL, epoch: Number(second?.epoch) };
      expect(await store.putInstance(row("i", { goal: "stopped", version: 1 }), present)).toBe("put");
      await store.deleteInstance("i", present);
      await store.deleteInstance("j", CALL);
      expect(await store.listInstances(CALL)).toEqual([]);
    });
  });
}
