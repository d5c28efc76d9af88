import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import { destroyed, fork, forkInto, readFile, rollBack, rowsOf, writeAndSeal } from "./turn.suite.ts";

const BROKEN = new SandboxError("STORAGE_UNAVAILABLE", "broken by the test");

const tokensIn = async (test: TestHost): Promise<string[]> =>
  (await test.storage.inventory({ signal: SIGNAL })).map(({ token }) => token);

describe("forkSession", () => {
  it("makes children of the files as they are now, with the parent's settings and a life of their own", async () => {
    await using test = await startTestHost();
    const time = { ttlMs: 60_000, idleTimeoutMs: 5_000, onTimeout: "pause" } as const;
    const session = await test.create({ labels: { a: "1" }, env: { KEY: "x" }, quotaBytes: 1_000_000, time });
    await writeAndSeal(test, session, "one");
    await test.bash(session, "write /workspace/a two");
    const children = await forkInto(test, session, { count: 3 });
    expect(children).toHaveLength(3);
    for (const child of children) {
      expect(await readFile(test, child)).toBe("two");
      const { labels, env, quotaBytes, refquotaBytes } = session.row;
      expect(child.row).toMatchObject({ labels, env, quotaBytes, refquotaBytes, generation: 1, turnCounter: 1 });
      expect(child.row.timing).toMatchObject(time);
    }
    await test.bash(children[0] as never, "write /workspace/a mine");
    expect(await readFile(test, session)).toBe("two");
    // The turn counter goes on from the parent's.
    await writeAndSeal(test, children[1] as never, "next");
    expect(children[1]?.row.turnCounter).toBe(2);
  });

  it("forks from a snapshot, with what the request gives", async () => {
    await using test = await startTestHost();
    const session = await test.create({ labels: { a: "1" } });
    const first = await writeAndSeal(test, session, "one");
    await writeAndSeal(test, session, "two");
    const [child] = await forkInto(test, session, {
      snapshotId: first,
      childIds: ["kid"],
      labels: { b: "2" },
      env: { E: "1" },
      ttlMs: 1000,
    });
    expect(child?.row).toMatchObject({ id: "kid", labels: { b: "2" }, env: { E: "1" } });
    expect(child?.row.forkedFrom).toEqual({ sessionId: session.row.id, snapshotId: first });
    expect(await readFile(test, child as never)).toBe("one");
    expect(await rowsOf(test, session)).toHaveLength(2);
  });

  it("refuses what cannot be before anything is made", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    for (const bad of [
      { count: 0 },
      { count: 101 },
      { count: 2, childIds: ["a"] },
      { count: 2, childIds: ["a", "a"] },
      { childIds: ["../x"] },
    ]) {
      await expect(fork(test, session, bad)).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    }
    await expect(fork(test, session, { snapshotId: "snap-x" })).rejects.toMatchObject({ reason: "SNAPSHOT_NOT_FOUND" });
    expect(await rowsOf(test, session)).toEqual([]);
    expect(test.host.registry.size).toBe(1);
  });

  it("answers for each child: one that cannot be made holds up no other", async () => {
    await using test = await startTestHost({ maxSessions: 3 });
    const session = await test.create({ sessionId: "taken" });
    const { children } = await fork(test, session, { count: 4, childIds: ["a", "taken", "b", "c"] });
    expect(children.map((child) => ("reason" in child ? child.reason : child.id))).toEqual([
      "a",
      "SESSION_EXISTS",
      "b",
      "MAX_SESSIONS_REACHED",
    ]);
    test.storage.faults.failNext("createSession", { error: BROKEN });
    await destroyed(test, test.host.registry.find("a") as never);
    const again = await fork(test, session, { childIds: ["a"] });
    expect(again.children).toEqual([expect.objectContaining({ reason: "STORAGE_UNAVAILABLE" })]);
    expect(await tokensIn(test)).toHaveLength(2);
  });

  it("gives the same children for the same key, also over a restart", async () => {
    const before = await startTestHost();
    const session = await before.create();
    const first = await fork(before, session, { idempotencyKey: "k", count: 2 });
    expect(await fork(before, session, { idempotencyKey: "k", count: 2 })).toEqual(first);
    await using after = await before.restart();
    const again = after.host.registry.find(session.row.id);
    expect(again && (await fork(after, again, { idempotencyKey: "k", count: 2 }))).toEqual(first);
    expect(after.host.registry.size).toBe(3);
  });
});

describe("a parent and its forks", () => {
  it("lets the parent go first: it becomes a husk that goes with its last fork, and its id is free at once", async () => {
    await using test = await startTestHost();
    const session = await test.create({ sessionId: "parent" });
    await writeAndSeal(test, session, "one");
    const [first, second] = await forkInto(test, session, { count: 2 });
    await destroyed(test, session);
    expect(await test.host.records.call("listHusks", null)).toMatchObject([{ sessionId: "parent" }]);
    await test.create({ sessionId: "parent" });
    expect(await readFile(test, first as never)).toBe("one");
    await destroyed(test, first as never);
    expect(await readFile(test, second as never)).toBe("one");
    await destroyed(test, second as never);
    expect(await test.host.records.call("listHusks", null)).toEqual([]);
    expect(await tokensIn(test)).toHaveLength(1);
  });

  it("lets a chain of forks go in any order, over a restart too", async () => {
    const before = await startTestHost();
    const session = await before.create({ sessionId: "a" });
    await writeAndSeal(before, session, "one");
    const [child] = await forkInto(before, session, { childIds: ["b"] });
    await forkInto(before, child as never, { childIds: ["c"] });
    await destroyed(before, session);
    await destroyed(before, child as never);
    await using after = await before.restart();
    expect(await after.host.records.call("listHusks", null)).toHaveLength(2);
    const grandchild = after.host.registry.find("c");
    if (grandchild === undefined) throw new Error("the grandchild is gone");
    expect(await readFile(after, grandchild)).toBe("one");
    await destroyed(after, grandchild);
    expect(await tokensIn(after)).toEqual([]);
    expect(await after.host.records.call("listHusks", null)).toEqual([]);
  });

  it("keeps a fork whole while its parent is rolled back", async () => {
    await using test = await startTestHost({ maxSnapshotsPerSession: 1 });
    const session = await test.create();
    const first = await writeAndSeal(test, session, "one");
    const [child] = await forkInto(test, session, { snapshotId: first });
    await writeAndSeal(test, session, "two");
    await rollBack(test, session, first);
    await writeAndSeal(test, session, "three");
    await session.serial.idle();
    expect(await readFile(test, child as never)).toBe("one");
    expect(await readFile(test, session)).toBe("three");
  });
});

describe("createSession from a snapshot", () => {
  it("takes the files of a snapshot of the same tenant, and no other's", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const first = await writeAndSeal(test, session, "one");
    const made = await test.create({ base: first, labels: { new: "yes" } });
    expect(made.row).toMatchObject({ labels: { new: "yes" }, turnCounter: 0, base: session.row.base });
    expect(await readFile(test, made)).toBe("one");
    await expect(test.create({ base: first, tenant: "other" })).rejects.toMatchObject({ reason: "TEMPLATE_NOT_FOUND" });
  });
});
