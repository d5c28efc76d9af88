import { describe, expect, it } from "@jest/globals";
import { SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import type { Session } from "../session/session.ts";
import {
  destroyed,
  forkInto,
  readFile,
  rollBack,
  rowsOf,
  storedNames,
  takeSnapshot,
  writeAndSeal,
} from "./turn.suite.ts";

/** Retention runs behind the turn that made it necessary, in the session's own order. */
const settled = (session: Session): Promise<void> => session.serial.idle();
const heads = async (test: TestHost, session: Session): Promise<number[]> =>
  (await test.storage.inventory({ signal: SIGNAL }))
    .filter(({ token }) => token === session.row.token)
    .flatMap((place) => place.heads.map(({ generation }) => generation));

describe("retention", () => {
  it("counts all kinds and drops the oldest", async () => {
    await using test = await startTestHost({ maxSnapshotsPerSession: 3 });
    const session = await test.create();
    await takeSnapshot(test, session, "first");
    for (const text of ["one", "two", "three", "four"]) await writeAndSeal(test, session, text);
    await settled(session);
    expect((await rowsOf(test, session)).map(({ turnNumber }) => turnNumber)).toEqual([2, 3, 4]);
    expect(await storedNames(test, session)).toHaveLength(3);
  });

  it("counts the snapshots of tools, and a call id is never part of a name (D9)", async () => {
    await using test = await startTestHost({ maxSnapshotsPerSession: 2, perToolSnapshots: true });
    const session = await test.create();
    const ids: (string | null)[] = [];
    for (const index of [1, 2, 3]) {
      ids.push((await test.bash(session, `write /workspace/a ${index}`, `../../@x y ${index}`)).snapshotId);
    }
    await settled(session);
    const rows = await rowsOf(test, session);
    expect(rows.map(({ kind, id }) => [kind, id])).toEqual([
      ["tool", ids[1]],
      ["tool", ids[2]],
    ]);
    expect(rows.every(({ name }) => /^s\d+$/.test(name))).toBe(true);
    // A call that wrote nothing has the last snapshot, and one that failed has none.
    expect((await test.bash(session, "cat /workspace/a")).snapshotId).toBe(ids[2]);
    expect((await test.bash(session, "exit 3")).snapshotId).toBeNull();
  });

  it("keeps what a fork or the live head stands on, and drops it when they are gone", async () => {
    await using test = await startTestHost({ maxSnapshotsPerSession: 1 });
    const session = await test.create();
    const first = await writeAndSeal(test, session, "one");
    const [child] = await forkInto(test, session, { snapshotId: first });
    for (const text of ["two", "three"]) await writeAndSeal(test, session, text);
    await settled(session);
    expect((await rowsOf(test, session)).map(({ turnNumber }) => turnNumber)).toEqual([1, 3]);
    if (child === undefined) throw new Error("there is no child");
    expect(await readFile(test, child)).toBe("one");
    await destroyed(test, child);
    await writeAndSeal(test, session, "four");
    await settled(session);
    expect((await rowsOf(test, session)).map(({ turnNumber }) => turnNumber)).toEqual([4]);
  });

  it("ends the heads of branches that it has emptied, and numbers go on after it (D10)", async () => {
    await using test = await startTestHost({ maxSnapshotsPerSession: 2 });
    const session = await test.create();
    const first = await writeAndSeal(test, session, "one");
    await writeAndSeal(test, session, "two");
    await rollBack(test, session, first);
    for (const text of ["three", "four", "five"]) await writeAndSeal(test, session, text);
    await settled(session);
    expect((await rowsOf(test, session)).map(({ turnNumber }) => turnNumber)).toEqual([4, 5]);
    expect(await heads(test, session)).toEqual([2]);
    expect(await readFile(test, session)).toBe("five");
  });

  it("is taken up again after a crash in the middle of it", async () => {
    const before = await startTestHost({ maxSnapshotsPerSession: 1 });
    const session = await before.create();
    await writeAndSeal(before, session, "one");
    const hold = before.storage.faults.holdNext("destroySnapshot");
    await writeAndSeal(before, session, "two");
    await hold.entered;
    const restarting = before.restart();
    hold.release();
    await using after = await restarting;
    const again = after.host.registry.find(session.row.id);
    if (again === undefined) throw new Error("the session is gone");
    expect(await rowsOf(after, again)).toHaveLength((await storedNames(after, again)).length);
    await writeAndSeal(after, again, "three");
    await settled(again);
    expect((await rowsOf(after, again)).map(({ turnNumber }) => turnNumber)).toEqual([3]);
  });
});
