import { describe, expect, it } from "@jest/globals";
import type { SessionRow } from "../record/row.ts";
import { createWrites } from "./dirty-flag.ts";

function start() {
  let row = { generation: 1, headGeneration: 1, parentSnapshot: "a" } as SessionRow;
  const writes = createWrites(() => row);
  return { writes, change: (change: Partial<SessionRow>) => void (row = { ...row, ...change }) };
}

describe("writes", () => {
  it("are certain once one has ended", () => {
    const { writes } = start();
    const done = writes.begin();
    expect(writes.areCertain).toBe(false);
    done();
    expect(writes.areCertain).toBe(true);
  });

  for (const [what, change] of [
    ["a seal", { parentSnapshot: "b" }],
    ["a rollback", { headGeneration: 2, generation: 2 }],
    ["a loss of files", { generation: 2 }],
  ] as const) {
    it(`are forgotten with ${what}`, () => {
      const { writes, change: commit } = start();
      writes.begin()();
      commit(change);
      expect(writes.areCertain).toBe(false);
    });

    it(`are not certain where ${what} came in between`, () => {
      const { writes, change: commit } = start();
      const done = writes.begin();
      commit(change);
      done();
      expect(writes.areCertain).toBe(false);
    });
  }
});
