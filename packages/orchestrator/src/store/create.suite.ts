import { describe, expect, it } from "@jest/globals";
import { IDEMPOTENCY_RETENTION_MS, type SandboxRow, type Store } from "./store.ts";
import type { StoreUnderTest } from "./store-under-test.suite.ts";

const CALL = { signal: new AbortController().signal };
const REF = { tenant: "t1", method: "CreateSandbox", key: "k1" };
const KEY = { ...REF, payloadHash: "h1", nowMs: 1000 };

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

/** The contract of the steps of a create: begin, place, finish, or withdraw. */
export function createSuite(name: string, open: () => Promise<StoreUnderTest>): void {
  const openStore = async (): Promise<Store> => (await open()).store;
  describe(`creates of Store: ${name}`, () => {
    beginning(openStore);
    placing(openStore);
    finishing(openStore);
    withdrawing(openStore);
  });
}

function beginning(open: () => Promise<Store>): void {
  it("keeps a sandbox with everything that was said about it", async () => {
    await using store = await open();
    const sandbox = row("s1", { name: "web", labels: { app: "x" } });
    expect(await store.beginCreate({ row: sandbox }, CALL)).toEqual({ kind: "reserved" });
    expect(await store.getSandbox("s1", CALL)).toEqual(sandbox);
    expect(await store.getSandbox("s2", CALL)).toBeUndefined();
    await store.placeSandbox({ sessionId: "s1", instanceId: "i1", from: undefined }, CALL);
    expect(await store.getSandbox("s1", CALL)).toEqual({ ...sandbox, instanceId: "i1" });
    await store.finishCreate({ sessionId: "s1", instanceId: "i1", result: "" }, CALL);
    expect(await store.getSandbox("s1", CALL)).toEqual({ ...sandbox, instanceId: "i1", phase: "created" });
  });

  it("gives a name to one sandbox of a tenant, says whose it is, and frees it with the sandbox", async () => {
    await using store = await open();
    await store.beginCreate({ row: row("s1", { name: "web" }) }, CALL);
    const taken = { kind: "name_taken", by: { sessionId: "s1" } };
    expect(await store.beginCreate({ row: row("s2", { name: "web" }) }, CALL)).toMatchObject(taken);
    expect(await store.getSandbox("s2", CALL)).toBeUndefined();
    const elsewhere = row("s3", { name: "web", tenant: "t2" });
    expect(await store.beginCreate({ row: elsewhere }, CALL)).toEqual({ kind: "reserved" });
    await store.deleteSandbox("s1", CALL);
    await store.deleteSandbox("s1", CALL);
    expect(await store.beginCreate({ row: row("s2", { name: "web" }) }, CALL)).toEqual({ kind: "reserved" });
  });

  it("lets the same session begin again and leaves its row as it is", async () => {
    await using store = await open();
    await store.beginCreate({ row: row("s1", { name: "web" }) }, CALL);
    await store.placeSandbox({ sessionId: "s1", instanceId: "i1", from: undefined }, CALL);
    expect(await store.beginCreate({ row: row("s1", { name: "web" }) }, CALL)).toEqual({ kind: "reserved" });
    expect(await store.getSandbox("s1", CALL)).toMatchObject({ instanceId: "i1" });
  });

  it("gives a name to exactly one of many that begin at once", async () => {
    await using store = await open();
    const rows = Array.from({ length: 20 }, (_, index) => row(`s${String(index)}`, { name: "web" }));
    const begun = await Promise.all(
      rows.map((one) => store.beginCreate({ row: one, key: { ...KEY, key: one.sessionId } }, CALL)),
    );
    expect(begun.filter(({ kind }) => kind === "reserved")).toHaveLength(1);
    expect(begun.filter(({ kind }) => kind === "name_taken")).toHaveLength(19);
  });

  it("lets one of many that begin under the same key reserve, and the others resume its row", async () => {
    await using store = await open();
    const rows = Array.from({ length: 20 }, (_, index) => row(`s${String(index)}`, { name: "web" }));
    const begun = await Promise.all(rows.map((one) => store.beginCreate({ row: one, key: KEY }, CALL)));
    const first = rows[begun.findIndex(({ kind }) => kind === "reserved")];
    const resumed = begun.filter((one) => one.kind === "resumed");
    expect(resumed).toHaveLength(19);
    expect(resumed.map((one) => one.row)).toEqual(Array(19).fill(first));
  });

  it("resumes what was begun under the key, with the instance that it was placed on", async () => {
    await using store = await open();
    expect(await store.beginCreate({ row: row("s1"), key: KEY }, CALL)).toEqual({ kind: "reserved" });
    expect(await store.beginCreate({ row: row("s2"), key: KEY }, CALL)).toEqual({ kind: "resumed", row: row("s1") });
    await store.placeSandbox({ sessionId: "s1", instanceId: "i1", from: undefined }, CALL);
    expect(await store.beginCreate({ row: row("s2"), key: KEY }, CALL)).toEqual({
      kind: "resumed",
      row: row("s1", { instanceId: "i1" }),
    });
    expect(await store.getSandbox("s2", CALL)).toBeUndefined();
  });

  it("says from the beginning which instance is asked, if the row does", async () => {
    await using store = await open();
    const sandbox = row("s1", { instanceId: "i1" });
    expect(await store.beginCreate({ row: sandbox, key: KEY }, CALL)).toEqual({ kind: "reserved" });
    const elsewhere = row("s2", { instanceId: "i2" });
    expect(await store.beginCreate({ row: elsewhere, key: KEY }, CALL)).toEqual({ kind: "resumed", row: sandbox });
    expect(await store.finishCreate({ sessionId: "s1", instanceId: "i1", key: REF, result: "" }, CALL)).toBe(
      "finished",
    );
  });

  it("puts the row of an unfinished key back if it is missing, on no instance", async () => {
    await using store = await open();
    await store.beginCreate({ row: row("s1", { name: "web" }), key: KEY }, CALL);
    await store.deleteSandbox("s1", CALL);
    const again = row("s2", { name: "web", createdAtMs: 6 });
    const restored = { ...again, sessionId: "s1" };
    const elsewhere = { ...again, instanceId: "i1" };
    expect(await store.beginCreate({ row: elsewhere, key: KEY }, CALL)).toEqual({ kind: "resumed", row: restored });
    expect(await store.getSandbox("s1", CALL)).toEqual(restored);
  });

  it("keeps no key of a create whose name is taken, be it new or unfinished", async () => {
    await using store = await open();
    await store.beginCreate({ row: row("s1", { name: "web" }) }, CALL);
    const taken = { kind: "name_taken", by: row("s1", { name: "web" }) };
    expect(await store.beginCreate({ row: row("s2", { name: "web" }), key: KEY }, CALL)).toEqual(taken);
    const other = { ...KEY, payloadHash: "h2" };
    expect(await store.beginCreate({ row: row("s3"), key: other }, CALL)).toEqual({ kind: "reserved" });
    await store.deleteSandbox("s3", CALL);
    expect(await store.beginCreate({ row: row("s4", { name: "web" }), key: other }, CALL)).toEqual(taken);
    expect(await store.beginCreate({ row: row("s5"), key: KEY }, CALL)).toEqual({ kind: "reserved" });
  });

  it("refuses a key that comes with another payload, and begins one that is outdated again", async () => {
    await using store = await open();
    await store.beginCreate({ row: row("s1"), key: KEY }, CALL);
    const other = { ...KEY, payloadHash: "h2" };
    expect(await store.beginCreate({ row: row("s2"), key: other }, CALL)).toEqual({ kind: "conflict" });
    expect(await store.getSandbox("s2", CALL)).toBeUndefined();
    const later = { ...other, nowMs: KEY.nowMs + IDEMPOTENCY_RETENTION_MS };
    expect(await store.beginCreate({ row: row("s2"), key: later }, CALL)).toEqual({ kind: "reserved" });
  });
}

function placing(open: () => Promise<Store>): void {
  it("does not put a sandbox into the index by placing it", async () => {
    await using store = await open();
    expect(await store.placeSandbox({ sessionId: "s1", instanceId: "i1", from: undefined }, CALL)).toBe("changed");
    expect(await store.getSandbox("s1", CALL)).toBeUndefined();
  });

  it("places a sandbox only from where the caller knows it to be, and again where it is", async () => {
    await using store = await open();
    const place = (instanceId: string, from: string | undefined) =>
      store.placeSandbox({ sessionId: "s1", instanceId, from }, CALL);
    await store.beginCreate({ row: row("s1") }, CALL);
    expect(await place("i1", undefined)).toBe("placed");
    expect(await place("i1", undefined)).toBe("placed");
    expect(await place("i2", undefined)).toBe("changed");
    expect(await place("i2", "i1")).toBe("placed");
    await store.finishCreate({ sessionId: "s1", instanceId: "i2", result: "" }, CALL);
    expect(await place("i2", undefined)).toBe("placed");
    expect(await place("i1", "i3")).toBe("changed");
    expect(await store.getSandbox("s1", CALL)).toMatchObject({ instanceId: "i2", phase: "created" });
  });
}

function finishing(open: () => Promise<Store>): void {
  const finish = { sessionId: "s1", instanceId: "i1", key: REF, result: "first" };
  const begin = async (store: Store): Promise<void> => {
    await store.beginCreate({ row: row("s1"), key: KEY }, CALL);
    await store.placeSandbox({ sessionId: "s1", instanceId: "i1", from: undefined }, CALL);
  };

  it("finishes a create with its key and keeps the first result", async () => {
    await using store = await open();
    await begin(store);
    expect(await store.finishCreate(finish, CALL)).toBe("finished");
    expect(await store.finishCreate({ ...finish, result: "second" }, CALL)).toBe("finished");
    expect(await store.getSandbox("s1", CALL)).toMatchObject({ phase: "created" });
    expect(await store.beginCreate({ row: row("s2"), key: KEY }, CALL)).toEqual({ kind: "done", result: "first" });
    expect(await store.getSandbox("s2", CALL)).toBeUndefined();
  });

  it("finishes nothing if the sandbox is elsewhere or not in the index", async () => {
    await using store = await open();
    await begin(store);
    await store.placeSandbox({ sessionId: "s1", instanceId: "i2", from: "i1" }, CALL);
    expect(await store.finishCreate(finish, CALL)).toBe("changed");
    expect(await store.beginCreate({ row: row("s2"), key: KEY }, CALL)).toMatchObject({ kind: "resumed" });
    expect(await store.getSandbox("s1", CALL)).toMatchObject({ instanceId: "i2", phase: "creating" });
    expect(await store.finishCreate({ ...finish, sessionId: "s9" }, CALL)).toBe("changed");
    expect(await store.getSandbox("s9", CALL)).toBeUndefined();
  });

  it("finishes nothing if the key is gone or was begun again under another plan", async () => {
    await using store = await open();
    await begin(store);
    await store.abandonIdempotent(REF, CALL);
    expect(await store.finishCreate(finish, CALL)).toBe("changed");
    await store.beginCreate({ row: row("s2"), key: KEY }, CALL);
    expect(await store.finishCreate(finish, CALL)).toBe("changed");
    expect(await store.getSandbox("s1", CALL)).toMatchObject({ phase: "creating" });
    expect(await store.beginCreate({ row: row("s3"), key: KEY }, CALL)).toEqual({ kind: "resumed", row: row("s2") });
  });
}

function withdrawing(open: () => Promise<Store>): void {
  it("withdraws a sandbox and its key together, unless another caller has placed it meanwhile", async () => {
    await using store = await open();
    const begin = (sessionId: string) => store.beginCreate({ row: row(sessionId, { name: "web" }), key: KEY }, CALL);
    const withdraw = (from: string | undefined) => store.withdrawSandbox({ sessionId: "s1", from, key: REF }, CALL);
    await begin("s1");
    await store.placeSandbox({ sessionId: "s1", instanceId: "i1", from: undefined }, CALL);
    expect(await withdraw(undefined)).toBe("changed");
    expect(await begin("s2")).toMatchObject({ kind: "resumed", row: { sessionId: "s1" } });
    expect(await withdraw("i1")).toBe("withdrawn");
    expect(await withdraw("i1")).toBe("withdrawn");
    expect(await store.getSandbox("s1", CALL)).toBeUndefined();
    expect(await begin("s2")).toEqual({ kind: "reserved" });
    expect(await withdraw(undefined)).toBe("withdrawn");
    expect(await begin("s3")).toMatchObject({ kind: "resumed", row: { sessionId: "s2" } });
  });

  it("leaves a finished key as it is when its sandbox is withdrawn", async () => {
    await using store = await open();
    await store.beginCreate({ row: row("s1"), key: KEY }, CALL);
    await store.placeSandbox({ sessionId: "s1", instanceId: "i1", from: undefined }, CALL);
    await store.finishCreate({ sessionId: "s1", instanceId: "i1", key: REF, result: "made" }, CALL);
    expect(await store.withdrawSandbox({ sessionId: "s1", from: "i1", key: REF }, CALL)).toBe("withdrawn");
    expect(await store.beginCreate({ row: row("s2"), key: KEY }, CALL)).toEqual({ kind: "done", result: "made" });
  });
}
