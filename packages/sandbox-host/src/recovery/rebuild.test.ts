import { mkdtempDisposable, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { SIGNAL, startTestHost } from "../compose.suite.ts";
import { DENY_ALL } from "../network-policy/policy.ts";
import { openRecords } from "../record/records.ts";
import type { Storage } from "../storage/storage.ts";
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

  it("brings network policies back as they were last, and denies everything to a home of an earlier version", async () => {
    await using before = await startTestHost();
    const policyOf = (allowList: readonly string[]) => ({ ...DENY_ALL, allowOutbound: true, allowList });
    const long = policyOf(Array.from({ length: 200 }, (_, index) => `host-${index}.example.org`));
    const first = await before.create({ sessionId: "a", networkPolicy: long });
    const second = await before.create({ sessionId: "b", networkPolicy: long });
    await before.create({ sessionId: "c" });
    const change = {
      idempotencyKey: "",
      payload: "",
      expectedGeneration: undefined,
      policy: policyOf(["10.9.0.0/16"]),
    };
    await before.host.updateNetworkPolicy(second, change, { signal: SIGNAL });
    const wanted = [first.row.networkPolicy, policyOf(["10.9.0.0/16"]), null];
    const { storage } = before;
    const isPolicy = (key: string): boolean => key.startsWith("network_policy");
    const withoutPolicies = async (): ReturnType<Storage["inventory"]> =>
      (await storage.inventory({ signal: SIGNAL })).map((found) => ({
        ...found,
        marks: Object.fromEntries(Object.entries(found.marks).filter(([key]) => !isPolicy(key))),
      }));
    const rebuilt = async (from: Storage): Promise<readonly unknown[]> => {
      await using directory = await mkdtempDisposable(join(tmpdir(), "turnbox-rebuilt-"));
      await using records = await openRecords(join(directory.path, "host.db"));
      await rebuildRecords({ records, storage: from }, { signal: SIGNAL });
      const rows = await records.call("listSessions", null);
      return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map(({ networkPolicy }) => networkPolicy);
    };
    expect(await rebuilt(storage)).toEqual(wanted);
    expect(await rebuilt({ ...storage, inventory: withoutPolicies })).toEqual([null, null, null]);
  });

  it("touches nothing that has a record", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const result = await rebuildRecords({ records: test.host.records, storage: test.storage }, { signal: SIGNAL });
    expect(result).toEqual({ rebuilt: [], unreadable: [] });
    expect(await test.host.records.call("listSessions", null)).toEqual([session.row]);
  });
});
