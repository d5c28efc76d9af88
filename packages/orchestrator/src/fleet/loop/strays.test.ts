import { describe, expect, it } from "@jest/globals";
import { strays } from "./strays.ts";
import { sight, silent, world } from "./world.suite.ts";

const gone = { machine: { state: "terminated", launchedAtMs: 0, interruption: undefined } } as const;
const unlisted = { ...silent, machine: undefined, missedLists: 3 } as const;

describe("the strays phase", () => {
  it("forgets a machine that has ended, whoever ended it", () => {
    expect(strays(world([sight("a", gone)]))).toEqual([{ kind: "forget", instanceId: "a" }]);
  });

  it("forgets a machine that is not listed any more where its end was asked for", () => {
    const ended = sight("a", { ...unlisted, row: { goal: "terminated" } });
    expect(strays(world([ended]))).toEqual([{ kind: "forget", instanceId: "a" }]);
    expect(strays(world([{ ...ended, missedLists: 2 }]))).toEqual([]);
  });

  it("only tells people of a machine that is not listed any more and was not ended", () => {
    expect(strays(world([sight("a", unlisted)]))).toMatchObject([{ kind: "report", instanceId: "a" }]);
  });

  it("believes a host that answers more than a list that lacks it", () => {
    expect(strays(world([sight("a", { machine: undefined, missedLists: 99 })]))).toEqual([]);
  });
});
