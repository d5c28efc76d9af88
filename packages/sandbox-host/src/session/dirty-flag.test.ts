import { describe, expect, it } from "@jest/globals";
import type { SessionRow } from "../record/row.ts";
import { DirtyFlag } from "./dirty-flag.ts";

function start() {
  let row = { generation: 1, headGeneration: 1, parentSnapshot: "a" } as SessionRow;
  const dirtyFlag = new DirtyFlag(() => row);
  return { dirtyFlag, change: (change: Partial<SessionRow>) => void (row = { ...row, ...change }) };
}

describe("the dirty flag", () => {
  it("are certain once one has ended", () => {
    const { dirtyFlag } = start();
    const done = dirtyFlag.beginWrite();
    expect(dirtyFlag.isSet).toBe(false);
    done();
    expect(dirtyFlag.isSet).toBe(true);
  });

  for (const [what, change] of [
    ["a seal", { parentSnapshot: "b" }],
    ["a rollback", { headGeneration: 2, generation: 2 }],
    ["a loss of files", { generation: 2 }],
  ] as const) {
    it(`are forgotten with ${what}`, () => {
      const { dirtyFlag, change: commit } = start();
      dirtyFlag.beginWrite()();
      commit(change);
      expect(dirtyFlag.isSet).toBe(false);
    });

    it(`are not certain where ${what} came in between`, () => {
      const { dirtyFlag, change: commit } = start();
      const done = dirtyFlag.beginWrite();
      commit(change);
      done();
      expect(dirtyFlag.isSet).toBe(false);
    });
  }
});
