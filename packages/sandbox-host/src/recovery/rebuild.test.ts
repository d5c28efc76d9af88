import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { SIGNAL, startTestHost } from "../compose.suite.ts";
import { openRecords } from "../record/records.ts";
import {
  completeTurn,
  deleteSnapshot,
  destroyed,
  forkInto,
  readFile,
  rollBack,
  takeSnapshot,
  writeAndSeal,
} from "../turn/turn.suite.ts";
import { rebuildRecords } from "./rebuild.ts";

describe("rebuildRecords", () => {
  it("makes sessions, snapshots and husks again from the pool alone, and nothing is numbered twice", async () => {
    const before = await startTestHost();
    const time = { ttlMs: 9e6, idleTimeoutMs: 8e6, onTimeout: "pause" } as const;
    const session = await before.create({ sessionId: "a", labels: { "x/y": "1=2", z: "" }, quotaBytes: 5e6, time });
    const first = await writeAndSeal(before, session, "one");
    await writeAndSeal(before, session, "two");
    await rollBack(before, session, first);
    await takeSnapshot(before, session, "by name");
    const last = await writeAndSeal(before, session, "three");
    await deleteSnapshot(before, session, last);
    const parent = await before.create({ sessionId: "parent" });
    await forkInto(before, parent, { childIds: ["child"] });
    await destroyed(before, parent);
    const rows = await before.host.records.call("listSnapshots", session.row.token);
    const known = session.row;

    await using after = await before.restart({
      whileDown: async (directory) => {
        for (const name of ["host.db", "host.db-wal", "host.db-shm"]) await rm(join(directory, name), { force: true });
        await using records = await openRecords(join(directory, "host.db"));
        const result = await rebuildRecords({ records, storage: before.storage }, { signal: SIGNAL });
        expect([...result.rebuilt].sort()).toEqual(["a", "child"]);
        expect(result.unreadable).toEqual([]);
      },
    });
    const again = after.host.registry.find("a");
    if (again === undefined) throw new Error("the session is gone");
    const { labels, timing, limits, quotaBytes, refquotaBytes, base, createdAtMs, turnCounter } = known;
    expect(again.row).toMatchObject({
      labels,
      timing,
      limits,
      quotaBytes,
      refquotaBytes,
      base,
      createdAtMs,
      turnCounter,
    });
    expect(again.row.generation).toBeGreaterThan(known.generation);
    const rebuilt = await after.host.records.call("listSnapshots", again.row.token);
    expect(rebuilt.map(({ id }) => id).sort()).toEqual(rows.map(({ id }) => id).sort());
    expect(rebuilt.find(({ id }) => id === first)).toEqual(rows.find(({ id }) => id === first));
    expect(await readFile(after, again)).toBe("three");
    const turn = await completeTurn(after, again);
    expect(turn).toMatchObject({ turnNumber: turnCounter + 1, unchanged: false });
    expect((await rollBack(after, again, first)).generation).toBe(again.row.generation);
    expect(await readFile(after, again)).toBe("one");
    const child = after.host.registry.find("child");
    if (child === undefined) throw new Error("the child is gone");
    await destroyed(after, child);
    expect(await after.host.records.call("listHusks", null)).toEqual([]);
  });

  it("touches nothing that has a record", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const result = await rebuildRecords({ records: test.host.records, storage: test.storage }, { signal: SIGNAL });
    expect(result).toEqual({ rebuilt: [], unreadable: [] });
    expect(await test.host.records.call("listSessions", null)).toEqual([session.row]);
  });
});
