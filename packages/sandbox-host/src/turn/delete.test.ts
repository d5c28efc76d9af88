import { describe, expect, it } from "@jest/globals";
import { SIGNAL, startTestHost } from "../compose.suite.ts";
import {
  completeTurn,
  deleteSnapshot,
  forkInto,
  readFile,
  rollBack,
  rowsOf,
  storedNames,
  writeAndSeal,
} from "./turn.suite.ts";

describe("deleteSnapshot", () => {
  it("destroys it, and what continued from it continues from its parent", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const first = await writeAndSeal(test, session, "one");
    const second = await writeAndSeal(test, session, "two");
    const third = await writeAndSeal(test, session, "three");
    await deleteSnapshot(test, session, second, "k");
    await deleteSnapshot(test, session, second, "k");
    expect((await rowsOf(test, session)).map(({ id, parent }) => [id, parent])).toEqual([
      [first, null],
      [third, first],
    ]);
    expect(await storedNames(test, session)).toHaveLength(2);
    await expect(deleteSnapshot(test, session, second)).rejects.toMatchObject({ reason: "SNAPSHOT_NOT_FOUND" });
  });

  it("never gives the number of a deleted turn again", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const first = await writeAndSeal(test, session, "one");
    await deleteSnapshot(test, session, first);
    expect(session.row.parentSnapshot).toBeNull();
    expect(await completeTurn(test, session)).toMatchObject({ turnNumber: 2, unchanged: false });
  });

  it("refuses one that a fork was made from, and changes nothing", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const first = await writeAndSeal(test, session, "one");
    await writeAndSeal(test, session, "two");
    await forkInto(test, session, { snapshotId: first });
    await expect(deleteSnapshot(test, session, first)).rejects.toMatchObject({ reason: "SNAPSHOT_IN_USE" });
    expect(await rowsOf(test, session)).toHaveLength(2);
    expect(await test.host.records.call("listIntents", null)).toEqual([]);
  });

  it("frees the branch that it was the last snapshot of", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const first = await writeAndSeal(test, session, "one");
    const second = await writeAndSeal(test, session, "two");
    const { undoSnapshotId } = await rollBack(test, session, first);
    await deleteSnapshot(test, session, second);
    await deleteSnapshot(test, session, undoSnapshotId);
    const [stored] = await test.storage.inventory({ signal: SIGNAL });
    expect(stored?.heads.map(({ generation }) => generation)).toEqual([2]);
    expect(await readFile(test, session)).toBe("one");
    await deleteSnapshot(test, session, first);
    expect(await readFile(test, session)).toBe("one");
  });
});
