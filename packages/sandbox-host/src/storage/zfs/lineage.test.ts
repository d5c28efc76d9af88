import { describe, expect, it } from "@jest/globals";
import { clonedElsewhere, dependantsFirst, toLineage } from "./lineage.ts";

const lineage = toLineage([
  ["p/s", "-", "-"],
  ["p/s/g1", "p/base@base", "-"],
  ["p/s/g1@a", "-", "2"],
  ["p/s/g1@b", "-", "0"],
  ["p/s/g2", "p/s/g1@a", "-"],
]);

describe("the lineage of a session", () => {
  it("is its filesystems with their origins, and its snapshots that have clones", () => {
    expect(lineage.filesystems).toEqual([
      { name: "p/s", origin: "-" },
      { name: "p/s/g1", origin: "p/base@base" },
      { name: "p/s/g2", origin: "p/s/g1@a" },
    ]);
    expect([...lineage.clones]).toEqual([["p/s/g1@a", 2]]);
  });

  it("finds clones elsewhere by those it does not know", () => {
    expect(clonedElsewhere(lineage, lineage.filesystems)).toEqual(["p/s/g1@a"]);
    expect(clonedElsewhere(toLineage([["p/s/g1@a", "-", "1"]]), lineage.filesystems)).toEqual([]);
    expect(clonedElsewhere(lineage, [{ origin: "p/s/g1@a" }, { origin: "p/s/g1@a" }, {}])).toEqual([]);
  });
});

describe("dependantsFirst", () => {
  it("puts a head behind all that was cloned from it, whatever promotion has made of their order", () => {
    const heads = [
      { name: "p/t/g1", origin: "p/t/g3@x" },
      { name: "p/t/g2", origin: "p/t/g1@s" },
      { name: "p/t/g3", origin: "p/bases/mini/ab@base" },
      { name: "p/t/g10", origin: "p/t/g1@s" },
    ];
    expect(dependantsFirst(heads).map(({ name }) => name)).toEqual(["p/t/g2", "p/t/g10", "p/t/g1", "p/t/g3"]);
  });
});
