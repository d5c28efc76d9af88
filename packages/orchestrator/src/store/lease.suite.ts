import { describe, expect, it } from "@jest/globals";
import type { Store } from "./store.ts";
import type { StoreUnderTest } from "./store-under-test.suite.ts";

const CALL = { signal: new AbortController().signal };
/** Long, for the time of a real server goes on by itself beside what the tests let pass. */
const TTL_MS = 100_000;
const ask = (store: Store, holder: string) => store.acquireLease({ holder, ttlMs: TTL_MS }, CALL);

/** The contract of a store's lease and demand. */
export function leaseSuite(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`lease of Store: ${name}`, () => {
    it("gives the lease to the first that asks, and to no other while it is held", async () => {
      const { store: opened, passMs } = await open();
      await using store = opened;
      expect(await ask(store, "a")).toEqual({ holder: "a", epoch: 1 });
      expect(await ask(store, "b")).toBeUndefined();
      await passMs(TTL_MS / 2);
      expect(await ask(store, "b")).toBeUndefined();
    });

    it("renews the lease of its holder, under the same epoch", async () => {
      const { store: opened, passMs } = await open();
      await using store = opened;
      const lease = await ask(store, "a");
      await passMs(TTL_MS * 0.8);
      expect(await ask(store, "a")).toEqual(lease);
      await passMs(TTL_MS * 0.8);
      expect(await ask(store, "b")).toBeUndefined();
      expect(await ask(store, "a")).toEqual(lease);
    });

    it("gives a lease that ran out to the next that asks, under a higher epoch", async () => {
      const { store: opened, passMs } = await open();
      await using store = opened;
      const first = await ask(store, "a");
      await passMs(TTL_MS + 1);
      const second = await ask(store, "b");
      expect(second?.epoch).toBeGreaterThan(Number(first?.epoch));
      expect(await ask(store, "a")).toBeUndefined();
    });

    it("gives a lease that ran out back to its holder under a higher epoch too", async () => {
      const { store: opened, passMs } = await open();
      await using store = opened;
      const first = await ask(store, "a");
      await passMs(TTL_MS + 1);
      expect((await ask(store, "a"))?.epoch).toBeGreaterThan(Number(first?.epoch));
    });

    it("frees a lease that is given up at once, and never gives its epoch again", async () => {
      await using store = (await open()).store;
      const epochs: number[] = [];
      for (const holder of ["a", "b", "a", "a"]) {
        const lease = await ask(store, holder);
        if (lease === undefined) throw new Error("the lease is not free");
        epochs.push(lease.epoch);
        await store.releaseLease(lease, CALL);
        await store.releaseLease(lease, CALL);
      }
      expect(epochs).toEqual([...new Set(epochs)].sort((one, other) => one - other));
      expect(epochs).toHaveLength(4);
    });

    it("leaves a lease alone that somebody else, or the same holder under another epoch, gives up", async () => {
      await using store = (await open()).store;
      await store.releaseLease({ holder: "nobody", epoch: 7 }, CALL);
      const lease = await ask(store, "a");
      await store.releaseLease({ holder: "b", epoch: Number(lease?.epoch) }, CALL);
      await store.releaseLease({ holder: "a", epoch: Number(lease?.epoch) - 1 }, CALL);
      expect(await ask(store, "b")).toBeUndefined();
    });

    it("gives the lease to exactly one of many that ask at once", async () => {
      await using store = (await open()).store;
      const holders = Array.from({ length: 20 }, (_, index) => `h${String(index)}`);
      const leases = await Promise.all(holders.map((holder) => ask(store, holder)));
      expect(leases.filter((lease) => lease !== undefined)).toHaveLength(1);
    });

    it("does not keep a lease without end whose clock has gone back by an hour (fault 33)", async () => {
      const { store: opened, passMs } = await open();
      await using store = opened;
      const first = await ask(store, "a");
      await passMs(-3_600_000);
      expect((await ask(store, "b"))?.epoch).toBeGreaterThan(Number(first?.epoch));
    });

    it("adds up the creates that wait in all replicas, each as last told", async () => {
      await using store = (await open()).store;
      expect(await store.waitingCreates(CALL)).toBe(0);
      await store.putDemand({ holder: "a", waitingCreates: 3, ttlMs: TTL_MS }, CALL);
      await store.putDemand({ holder: "b", waitingCreates: 4, ttlMs: TTL_MS }, CALL);
      expect(await store.waitingCreates(CALL)).toBe(7);
      await store.putDemand({ holder: "a", waitingCreates: 1, ttlMs: TTL_MS }, CALL);
      await store.putDemand({ holder: "b", waitingCreates: 0, ttlMs: TTL_MS }, CALL);
      expect(await store.waitingCreates(CALL)).toBe(1);
    });

    it("forgets the demand of a replica that no longer tells it", async () => {
      const { store: opened, passMs } = await open();
      await using store = opened;
      await store.putDemand({ holder: "a", waitingCreates: 3, ttlMs: TTL_MS }, CALL);
      await store.putDemand({ holder: "b", waitingCreates: 4, ttlMs: 3 * TTL_MS }, CALL);
      await passMs(2 * TTL_MS);
      expect(await store.waitingCreates(CALL)).toBe(4);
    });
  });
}
