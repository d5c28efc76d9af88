import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { parseAddress, parseRange } from "./address.ts";
import { RangeSet } from "./range-set.ts";

const RUNS = { numRuns: 300 };
const address = fc.integer({ min: 0, max: 2 ** 32 - 1 });
/** Ranges that meet often: few places, every length. */
const cidr = fc
  .tuple(fc.constantFrom("0.0.0.0", "10.0.0.0", "10.128.0.0", "127.255.255.255", "255.255.255.255"), fc.nat(32))
  .map(([base, length]) => `${base}/${String(length)}`);
const cidrs = fc.array(cidr, { maxLength: 6 });
const within = (entries: readonly string[], at: number): boolean =>
  entries.some((entry) => {
    const range = parseRange(entry);
    return range !== undefined && range.first <= at && at <= range.last;
  });

describe("a set of ranges", () => {
  it("has what its entries have, and what is left of them", () => {
    fc.assert(
      fc.property(cidrs, cidrs, address, (some, others, at) => {
        const [one, two] = [RangeSet.of(some), RangeSet.of(others)];
        expect(one.has(at)).toBe(within(some, at));
        expect(one.with(two).has(at)).toBe(within(some, at) || within(others, at));
        expect(one.without(two).has(at)).toBe(within(some, at) && !within(others, at));
      }),
      RUNS,
    );
  });

  it("is the same set when it is written down and read again", () => {
    fc.assert(
      fc.property(cidrs, cidrs, (some, others) => {
        const set = RangeSet.of(some).without(RangeSet.of(others));
        expect(RangeSet.of(set.cidrs()).cidrs()).toEqual(set.cidrs());
      }),
      RUNS,
    );
  });

  it("covers a range that several entries cover together", () => {
    const halves = RangeSet.of(["0.0.0.0/1", "128.0.0.0/1"]);
    expect(halves.covers({ first: 0, last: 2 ** 32 - 1 })).toBe(true);
    expect(halves.cidrs()).toEqual(["0.0.0.0/0"]);
    expect(RangeSet.of(["10.0.0.0/8"]).covers({ first: parseAddress("10.0.0.0") ?? 0, last: 2 ** 32 - 1 })).toBe(false);
  });
});
