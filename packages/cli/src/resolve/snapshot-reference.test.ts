import { describe, expect, it } from "@jest/globals";
import { hasReason, type Reason } from "@turnbox/core";
import { matchSnapshot, type SnapshotNames } from "./snapshot-reference.ts";

const reasonOf = (act: () => unknown): Reason | undefined => {
  try {
    act();
    return undefined;
  } catch (thrown) {
    return hasReason(thrown, "INVALID_ARGUMENT", "SANDBOX_NOT_FOUND", "SNAPSHOT_NOT_FOUND")
      ? thrown.reason
      : "INTERNAL";
  }
};

const turn = (id: string, turnNumber: number): SnapshotNames => ({
  id,
  turnNumber,
  kind: "turn",
  name: `turn-000${String(turnNumber)}`,
});

const named = (id: string, name: string): SnapshotNames => ({ id, name, turnNumber: undefined, kind: "named" });

const snapshots: readonly SnapshotNames[] = [
  turn("k7aa", 1),
  turn("k7ab", 2),
  { id: "3xyz", turnNumber: undefined, kind: "undo", name: "undo" },
  turn("12zz", 3),
  named("n1", "before the upgrade"),
  named("n2", "twice"),
  named("n3", "twice"),
  named("n4", "k7a"),
  named("snap-q9wz", "turn-0002"),
];

describe("matchSnapshot", () => {
  it.each([
    ["an id", "k7ab", "k7ab"],
    ["a turn with a hash", "#2", "k7ab"],
    ["a turn without one", "2", "k7ab"],
    ["a turn before a prefix of an id", "3", "12zz"],
    ["a turn as it is written in the log", "turn-0002", "k7ab"],
    ["a turn with fewer zeros", "turn-3", "12zz"],
    ["a name", "before the upgrade", "n1"],
    ["a name before a prefix of an id", "k7a", "n4"],
    ["a unique prefix", "12", "12zz"],
    ["a unique prefix without what all ids begin with", "q9", "snap-q9wz"],
  ])("finds by %s", (_how, reference, snapshotId) => {
    expect(matchSnapshot(reference, snapshots)).toBe(snapshotId);
  });

  it("refuses an ambiguous prefix, or a name that several have, with the candidates", () => {
    expect(() => matchSnapshot("twice", snapshots)).toThrow('snapshot: "twice" could be n2, n3');
    expect(() => matchSnapshot("k7", snapshots)).toThrow('snapshot: "k7" could be k7aa, k7ab');
  });

  it("says when there is none; number 0 is no turn", () => {
    expect(reasonOf(() => matchSnapshot("#9", snapshots))).toBe("SNAPSHOT_NOT_FOUND");
    expect(reasonOf(() => matchSnapshot("#0", snapshots))).toBe("SNAPSHOT_NOT_FOUND");
    expect(reasonOf(() => matchSnapshot("turn-0009", snapshots))).toBe("SNAPSHOT_NOT_FOUND");
    expect(reasonOf(() => matchSnapshot("undo", snapshots))).toBe("SNAPSHOT_NOT_FOUND");
    expect(reasonOf(() => matchSnapshot("#", snapshots))).toBe("INVALID_ARGUMENT");
  });
});
