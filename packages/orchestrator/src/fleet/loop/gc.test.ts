import { describe, expect, it } from "@jest/globals";
import { gc } from "./gc.ts";
import { view, silent, world } from "./world.suite.ts";

const gone = { machine: { state: "terminated", launchedAtMs: 0, interruption: undefined } } as const;
const unlisted = { ...silent, machine: undefined, missedLists: 3 } as const;

describe("the gc phase", () => {
  it("forgets a machine that has ended, for whatever cause", () => {
    expect(gc(world([view("a", gone)]))).toEqual([{ kind: "forget", instanceId: "a" }]);
  });

  it("forgets a machine that is not listed any more where its end was asked for", () => {
    const ended = view("a", { ...unlisted, row: { goal: "terminated" } });
    expect(gc(world([ended]))).toEqual([{ kind: "forget", instanceId: "a" }]);
    expect(gc(world([{ ...ended, missedLists: 2 }]))).toEqual([]);
  });

  it("only tells people of a machine that is not listed any more and was not ended", () => {
    expect(gc(world([view("a", unlisted)]))).toMatchObject([{ kind: "report", instanceId: "a" }]);
  });

  it("believes a host that answers more than a list that lacks it", () => {
    expect(gc(world([view("a", { machine: undefined, missedLists: 99 })]))).toEqual([]);
  });
});
