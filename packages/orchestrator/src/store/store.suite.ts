import { describe, expect, it } from "@jest/globals";
import { IDEMPOTENCY_RETENTION_MS, type SandboxRow, type Store } from "./store.ts";

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

/** The contract of `Store`. `create` answers with an empty store that the suite disposes of. */
export function storeSuite(name: string, create: () => Promise<Store>): void {
  describe(`Store: ${name}`, () => {
    it("keeps instances, and changes the one that is there", async () => {
      await using store = await create();
      const instance = { instanceId: "b", admission: "open", labels: { zone: "1" }, createdAtMs: 1 } as const;
      await store.putInstance(instance, CALL);
      await store.putInstance({ ...instance, instanceId: "a" }, CALL);
      await store.putInstance({ ...instance, admission: "cordoned" }, CALL);
      expect(await store.listInstances(CALL)).toEqual([
        { ...instance, instanceId: "a" },
        { ...instance, admission: "cordoned" },
      ]);
      await store.deleteInstance("a", CALL);
      await store.deleteInstance("a", CALL);
      expect(await store.listInstances(CALL)).toHaveLength(1);
    });

    it("keeps a sandbox with everything that was said about it", async () => {
      await using store = await create();
      const sandbox = row("s1", { name: "web", labels: { app: "x" } });
      expect(await store.reserveSandbox(sandbox, CALL)).toEqual({ kind: "reserved" });
      expect(await store.getSandbox("s1", CALL)).toEqual(sandbox);
      expect(await store.getSandbox("s2", CALL)).toBeUndefined();
      await store.placeSandbox({ sessionId: "s1", instanceId: "i1", phase: "created" }, CALL);
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
      await store.placeSandbox({ sessionId: "s1", instanceId: "i1", phase: "created" }, CALL);
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
      await store.placeSandbox({ sessionId: "s1", instanceId: "i1", phase: "created" }, CALL);
      expect(await store.getSandbox("s1", CALL)).toBeUndefined();
    });

    it("lists a tenant's sandboxes in pages, also those of one instance", async () => {
      await using store = await create();
      for (const id of ["s3", "s1", "s2"]) await store.reserveSandbox(row(id), CALL);
      await store.reserveSandbox(row("s4", { tenant: "t2" }), CALL);
      await store.placeSandbox({ sessionId: "s2", instanceId: "i1", phase: "created" }, CALL);
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

    it("answers a finished key with the first result, and a pending one with its plan", async () => {
      await using store = await create();
      expect(await store.beginIdempotent(BEGIN, CALL)).toEqual({ kind: "begun" });
      expect(await store.beginIdempotent({ ...BEGIN, plan: "plan-2" }, CALL)).toEqual({
        kind: "pending",
        plan: "plan-1",
      });
      await store.finishIdempotent(KEY, "result", CALL);
      await store.finishIdempotent(KEY, "another", CALL);
      expect(await store.beginIdempotent(BEGIN, CALL)).toEqual({ kind: "done", result: "result" });
    });

    it("refuses a key that comes with another payload, finished or not", async () => {
      await using store = await create();
      await store.beginIdempotent(BEGIN, CALL);
      expect(await store.beginIdempotent({ ...BEGIN, payloadHash: "h2" }, CALL)).toEqual({ kind: "conflict" });
      await store.finishIdempotent(KEY, "result", CALL);
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
      await store.finishIdempotent(KEY, "result", CALL);
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
