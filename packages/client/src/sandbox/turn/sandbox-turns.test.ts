import { describe, expect, it } from "@jest/globals";
import { openRoom } from "../../fake/room.suite.ts";

describe("turns", () => {
  it("are sealed and listed, without what is no turn", async () => {
    using room = await openRoom();
    expect(await room.sandbox.turn({ outcome: "failed" })).toMatchObject({
      number: 4,
      snapshotId: "s4",
      unchanged: false,
    });
    const turns = await room.sandbox.turns();
    expect(turns.map(({ turnNumber }) => turnNumber)).toEqual([1, 2, 3]);
    expect(turns[1]).toMatchObject({ turnKey: "build", outcome: "failed", parentId: "s1", head: false });
    expect(await room.sandbox.snapshots({ kinds: ["undo"] })).toMatchObject([
      { id: "u1", kind: "undo", outcome: undefined },
    ]);
  });

  it("are only counted where the host has no snapshots", async () => {
    using room = await openRoom();
    room.world.storage = "local-disk";
    expect(await room.sandbox.turn()).toMatchObject({ number: 4, snapshotId: undefined, snapshot: undefined });
  });

  it("are gone back to by number, id or snapshot", async () => {
    using room = await openRoom();
    const [, second] = await room.sandbox.turns();
    await room.sandbox.rollback(1);
    await room.sandbox.rollback("s3");
    if (second !== undefined) await room.sandbox.rollback(second);
    expect(room.world.rolledBackTo).toEqual(["s1", "s3", "s2"]);
    await expect(room.sandbox.rollback(9)).rejects.toMatchObject({ reason: "SNAPSHOT_NOT_FOUND" });
  });

  it("that were sealed here are known by number, without a word with the host", async () => {
    using room = await openRoom();
    const { number } = await room.sandbox.turn();
    room.world.snapshots.list = [];
    await room.sandbox.rollback(number);
    expect(room.world.rolledBackTo).toEqual(["s4"]);
    await expect(room.sandbox.rollback(1)).rejects.toMatchObject({ reason: "SNAPSHOT_NOT_FOUND" });
  });

  it("come back with undo, to what the last rollback took away", async () => {
    using room = await openRoom();
    expect(await room.sandbox.undo()).toEqual({ undoSnapshotId: "u2", generation: 2 });
    expect(room.world.rolledBackTo).toEqual(["u1"]);
    room.world.snapshots.list = [];
    await expect(room.sandbox.undo()).rejects.toMatchObject({ reason: "SNAPSHOT_NOT_FOUND" });
  });

  it("are compared, over all pages", async () => {
    using room = await openRoom();
    room.world.changes = [{ path: "/a" }, { path: "/b" }];
    expect(await room.sandbox.diff({ from: 1, to: "s3", text: true })).toMatchObject([{ path: "/a" }, { path: "/b" }]);
    expect(room.world.diffed[0]).toMatchObject({ fromSnapshotId: "s1", toSnapshotId: "s3", text: true });
  });
});
