import { describe, expect, it } from "@jest/globals";
import { Leases } from "./leases.ts";

describe("Leases", () => {
  it("last until each of them is over, which each is once", () => {
    const leases = new Leases();
    const [first, second] = [leases.take("pool/a@s1"), leases.take("pool/a@s1")];
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    expect(leases.has("pool/a@s1")).toBe(true);
    second[Symbol.dispose]();
    expect(leases.has("pool/a@s1")).toBe(false);
  });

  it("are found by what their names begin with", () => {
    const leases = new Leases();
    using _first = leases.take("pool/a@s1");
    using _second = leases.take("pool/ab@s1");
    expect(leases.startingWith("pool/a@")).toEqual(["pool/a@s1"]);
    expect(leases.startingWith("pool/b")).toEqual([]);
  });
});
