import { describe, expect, it } from "@jest/globals";
import { IDEMPOTENCY_RETENTION_MS, type SandboxRow, type Store } from "./store.ts";
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
  describe(`Store: ${name}`, () => {
    it("keeps a sandbox with everything that was said about it", async () => {
      await using store = await create();
      const sandbox = row("s1", { name: "web", labels: { app: "x" } });
      expect(await store.reserveSandbox(sandbox, CALL)).toEqual({ kind: "reserved" });
      expect(await store.getSandbox("s1", CALL)).toEqual(sandbox);
      expect(await store.getSandbox("s2", CALL)).toBeUndefined();
      await store.placeSandbox({ sessionId: "s1", instanceId: "i1", phase: "created", from: undefined }, CALL);
      expect(await store.getSandbox("s1", CALL)).toEqual({ ...sandbox, instanceId: "i1", phase: "created" });
    });

    it("gives a name to one sandbox of a tenant, says whose it is, and frees it with the sandbox", async () => {
      await using store = await create();
      await store.reserveSandbox(row("s1", { name: "web" }), CALL);
      expect(await store.reserveSandbox(row("s2", { name: "web" }), CALL)).toMatchObject({
        kind: "name_taken",
        by: { sessionId: "s1" },
      });
      expect(await store.getSandbox("s2", CALL)).toBeUndefined();
      expect(await store.reserveSandbox(row("s3", { name: "web", tenant: "t2" }), CALL)).toEqual({ kind: "reserved" });
      expect(await store.reserveSandbox(row("s4", { name: "web", tenant: "t2" }), CALL)).toMatchObject({
        kind: "name_taken",
        by: { sessionId: "s3" },
      });
      await store.deleteSandbox("s1", CALL);
      await store.deleteSandbox("s1", CALL);
      expect(await store.reserveSandbox(row("s2", { name: "web" }), CALL)).toEqual({ kind: "reserved" });
    });

    it("lets the same session reserve again and leaves it as it is", async () => {
      await using store = await create();
      await store.reserveSandbox(row("s1", { name: "web" }), CALL);
      await store.placeSandbox({ sessionId: "s1", instanceId: "i1", phase: "created", from: undefined }, CALL);
      expect(await store.reserveSandbox(row("s1", { name: "web" }), CALL)).toEqual({ kind: "reserved" });
      expect(await store.getSandbox("s1", CALL)).toMatchObject({ instanceId: "i1", phase: "created" });
    });

    it("gives a name to exactly one of many that ask at once", async () => {
      await using store = await create();
      const ids = Array.from({ length: 20 }, (_, index) => `s${String(index)}`);
      const answers = await Promise.all(ids.map((id) => store.reserveSandbox(row(id, { name: "web" }), CALL)));
      expect(answers.filter((answer) => answer.kind === "reserved")).toHaveLength(1);
    });

    it("does not put a sandbox into the index by placing it", async () => {
      await using store = await create();
      await store.placeSandbox({ sessionId: "s1", instanceId: "i1", phase: "created", from: undefined }, CALL);
      expect(await store.getSandbox("s1", CALL)).toBeUndefined();
    });

    it("places a sandbox only from where the caller knows it to be, and again where it is", async () => {
      await using store = await create();
      const place = (instanceId: string, from: string | undefined, phase: "creating" | "created" = "creating") =>
        store.placeSandbox({ sessionId: "s1", instanceId, phase, from }, CALL);
      expect(await place("i1", undefined)).toBe("changed");
      await store.reserveSandbox(row("s1"), CALL);
      expect(await place("i1", undefined)).toBe("placed");
      expect(await place("i1", undefined)).toBe("placed");
      expect(await place("i2", undefined)).toBe("changed");
      expect(await place("i2", "i1", "created")).toBe("placed");
      expect(await place("i2", undefined)).toBe("placed");
      expect(await place("i1", "i3")).toBe("changed");
      expect(await store.getSandbox("s1", CALL)).toMatchObject({ instanceId: "i2", phase: "created" });
    });

    it("finishes a key under the plan that it was begun with, and says where it was begun anew", async () => {
      await using store = await create();
      expect(await store.finishIdempotent(BEGIN, "result", CALL)).toBe("changed");
      await store.beginIdempotent(BEGIN, CALL);
      expect(await store.finishIdempotent({ ...BEGIN, plan: "another" }, "result", CALL)).toBe("changed");
      expect(await store.finishIdempotent(BEGIN, "first", CALL)).toBe("finished");
      expect(await store.finishIdempotent(BEGIN, "second", CALL)).toBe("finished");
      expect(await store.beginIdempotent(BEGIN, CALL)).toEqual({ kind: "done", result: "first" });
    });

    it("withdraws a sandbox and its key together, unless somebody has placed it meanwhile", async () => {
      await using store = await create();
      const begin = (plan: string) => store.beginIdempotent({ ...KEY, payloadHash: "h", plan, nowMs: 1 }, CALL);
      await begin("s1");
      await store.reserveSandbox(row("s1", { name: "web" }), CALL);
      await store.placeSandbox({ sessionId: "s1", instanceId: "i1", phase: "creating", from: undefined }, CALL);
      expect(await store.withdrawSandbox({ sessionId: "s1", from: undefined, key: KEY }, CALL)).toBe("changed");
      expect(await begin("s2")).toEqual({ kind: "pending", plan: "s1" });
      expect(await store.withdrawSandbox({ sessionId: "s1", from: "i1", key: KEY }, CALL)).toBe("withdrawn");
      expect(await store.withdrawSandbox({ sessionId: "s1", from: "i1", key: KEY }, CALL)).toBe("withdrawn");
      expect(await store.getSandbox("s1", CALL)).toBeUndefined();
      expect(await begin("s2")).toEqual({ kind: "begun" });
      expect(await store.withdrawSandbox({ sessionId: "s1", from: undefined, key: KEY }, CALL)).toBe("withdrawn");
      expect(await begin("s3")).toEqual({ kind: "pending", plan: "s2" });
      expect(await store.reserveSandbox(row("s2", { name: "web" }), CALL)).toEqual({ kind: "reserved" });
    });

    it("lists a tenant's sandboxes in pages, also those of one instance", async () => {
      await using store = await create();
      for (const id of ["s3", "s1", "s2"]) await store.reserveSandbox(row(id), CALL);
      await store.reserveSandbox(row("s4", { tenant: "t2" }), CALL);
      await store.placeSandbox({ sessionId: "s2", instanceId: "i1", phase: "created", from: undefined }, CALL);
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
      await store.reserveSandbox(row("s1", { name: "web" }), CALL);
      await store.reserveSandbox(row("s2", { name: "s1" }), CALL);
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
      await expect(store.reserveSandbox(row("s1"), { signal: AbortSignal.abort() })).rejects.toThrow();
      expect(await store.getSandbox("s1", CALL)).toBeUndefined();
    });
  });
}
