import { describe, expect, it } from "@jest/globals";
import { IDEMPOTENCY_RETENTION_MS, type SandboxRow, type Store } from "./store.ts";
import { createSuite } from "./create.suite.ts";
import { instanceSuite } from "./instance.suite.ts";
import { leaseSuite } from "./lease.suite.ts";
import type { StoreUnderTest } from "./store-under-test.suite.ts";

const CALL = { signal: new AbortController().signal };
const KEY = { tenant: "t1", method: "CreateSandbox", key: "k1" };
const BEGIN = { ...KEY, payloadHash: "h1", plan: "plan-1", nowMs: 1000 };

const row = (sessionId: string, changes: Partial<SandboxRow> = {}): SandboxRow => ({
  sessionId,
  tenant: "t1",
  name: undefined,
  labels: {},
  instanceId: undefined,
  phase: "creating",
  createdAtMs: 5,
  ...changes,
});

/** The contract of `Store`. */
export function storeSuite(name: string, open: () => Promise<StoreUnderTest>): void {
  const create = async (): Promise<Store> => (await open()).store;
  leaseSuite(name, open);
  instanceSuite(name, open);
  createSuite(name, open);
  describe(`Store: ${name}`, () => {
    it("finishes a key under the plan that it was begun with, and says if it was begun again", async () => {
      await using store = await create();
      expect(await store.finishIdempotent(BEGIN, "result", CALL)).toBe("changed");
      await store.beginIdempotent(BEGIN, CALL);
      expect(await store.finishIdempotent({ ...BEGIN, plan: "another" }, "result", CALL)).toBe("changed");
      expect(await store.finishIdempotent(BEGIN, "first", CALL)).toBe("finished");
      expect(await store.finishIdempotent(BEGIN, "second", CALL)).toBe("finished");
      expect(await store.beginIdempotent(BEGIN, CALL)).toEqual({ kind: "done", result: "first" });
    });

    it("lists a tenant's sandboxes in pages, also those of one instance", async () => {
      await using store = await create();
      for (const id of ["s3", "s1", "s2"]) await store.beginCreate({ row: row(id) }, CALL);
      await store.beginCreate({ row: row("s4", { tenant: "t2" }) }, CALL);
      await store.placeSandbox({ sessionId: "s2", instanceId: "i1", from: undefined }, CALL);
      const ids = async (query: { after: string; limit: number; instanceId?: string }): Promise<readonly string[]> =>
        (await store.listSandboxes({ tenant: "t1", ...query }, CALL)).map((one) => one.sessionId);
      expect(await ids({ after: "", limit: 2 })).toEqual(["s1", "s2"]);
      expect(await ids({ after: "s2", limit: 2 })).toEqual(["s3"]);
      expect(await ids({ after: "", limit: 9, instanceId: "i1" })).toEqual(["s2"]);
      expect((await store.getSandboxes(["s4", "s1", "s9"], CALL)).map((one) => one.sessionId).sort()).toEqual([
        "s1",
        "s4",
      ]);
      expect(await store.getSandboxes([], CALL)).toEqual([]);
    });

    it("finds a tenant's sandboxes by name and by session id", async () => {
      await using store = await create();
      const find = async (tenant: string, name: string) =>
        (await store.findSandboxes({ tenant, name }, CALL)).map(({ sessionId }) => sessionId).sort();
      await store.beginCreate({ row: row("s1", { name: "web" }) }, CALL);
      await store.beginCreate({ row: row("s2", { name: "s1" }) }, CALL);
      expect(await find(row("s1").tenant, "web")).toEqual(["s1"]);
      expect(await find(row("s1").tenant, "s2")).toEqual(["s2"]);
      expect(await find(row("s1").tenant, "s1")).toEqual(["s1", "s2"]);
      expect(await find(row("s1").tenant, "we")).toEqual([]);
      expect(await find("another", "web")).toEqual([]);
    });

    it("answers a finished key with the first result, and a pending one with its plan", async () => {
      await using store = await create();
      expect(await store.beginIdempotent(BEGIN, CALL)).toEqual({ kind: "begun" });
      expect(await store.beginIdempotent({ ...BEGIN, plan: "plan-2" }, CALL)).toEqual({
        kind: "pending",
        plan: "plan-1",
      });
      await store.finishIdempotent(BEGIN, "result", CALL);
      await store.finishIdempotent(BEGIN, "another", CALL);
      expect(await store.beginIdempotent(BEGIN, CALL)).toEqual({ kind: "done", result: "result" });
    });

    it("refuses a key that comes with another payload, finished or not", async () => {
      await using store = await create();
      await store.beginIdempotent(BEGIN, CALL);
      expect(await store.beginIdempotent({ ...BEGIN, payloadHash: "h2" }, CALL)).toEqual({ kind: "conflict" });
      await store.finishIdempotent(BEGIN, "result", CALL);
      expect(await store.beginIdempotent({ ...BEGIN, payloadHash: "h2" }, CALL)).toEqual({ kind: "conflict" });
    });

    it("keeps keys of tenants and methods apart", async () => {
      await using store = await create();
      await store.beginIdempotent(BEGIN, CALL);
      expect(await store.beginIdempotent({ ...BEGIN, tenant: "t2", payloadHash: "h2" }, CALL)).toEqual({
        kind: "begun",
      });
      expect(await store.beginIdempotent({ ...BEGIN, method: "Fork", payloadHash: "h2" }, CALL)).toEqual({
        kind: "begun",
      });
    });

    it("D22: an abandoned key is free again, a finished one is not abandoned", async () => {
      await using store = await create();
      await store.beginIdempotent(BEGIN, CALL);
      await store.abandonIdempotent(KEY, CALL);
      expect(await store.beginIdempotent({ ...BEGIN, payloadHash: "h2" }, CALL)).toEqual({ kind: "begun" });
      await store.finishIdempotent(BEGIN, "result", CALL);
      await store.abandonIdempotent(KEY, CALL);
      expect(await store.beginIdempotent({ ...BEGIN, payloadHash: "h2" }, CALL)).toEqual({
        kind: "done",
        result: "result",
      });
    });

    it("forgets keys after a day", async () => {
      await using store = await create();
      await store.beginIdempotent(BEGIN, CALL);
      const before = BEGIN.nowMs + IDEMPOTENCY_RETENTION_MS - 1;
      expect(await store.beginIdempotent({ ...BEGIN, nowMs: before }, CALL)).toMatchObject({ kind: "pending" });
      expect(await store.expireIdempotent(before, CALL)).toBe(0);
      expect(await store.beginIdempotent({ ...BEGIN, payloadHash: "h2", nowMs: before + 1 }, CALL)).toEqual({
        kind: "begun",
      });
      expect(await store.expireIdempotent(before + 1 + IDEMPOTENCY_RETENTION_MS, CALL)).toBe(1);
    });

    it("does nothing for a caller that is gone already", async () => {
      await using store = await create();
      await expect(store.beginCreate({ row: row("s1") }, { signal: AbortSignal.abort() })).rejects.toThrow();
      expect(await store.getSandbox("s1", CALL)).toBeUndefined();
    });
  });
}
