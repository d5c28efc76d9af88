import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { formatAddress, parseRange } from "./address.ts";
import { METADATA_RANGES, NetworkBounds, PRIVATE_RANGES, privateRangeFault, UNREACHABLE_RANGES } from "./bounds.ts";
import { DENY_ALL, judgeAddress, judgeAnswer, type NetworkPolicy, parsePolicy } from "./policy.ts";

const NONE = new NetworkBounds({ privateRanges: [], allowMetadata: false });
const ALL_PRIVATE = new NetworkBounds({ privateRanges: PRIVATE_RANGES, allowMetadata: false });
const EVERYTHING = new NetworkBounds({ privateRanges: PRIVATE_RANGES, allowMetadata: true });

/** The first, the last and one in the middle. */
function samplesOf(range: string): readonly string[] {
  const { first, last } = parseRange(range) ?? { first: 0, last: 0 };
  return [first, Math.floor((first + last) / 2), last].map((address) => formatAddress(address));
}
const isMetadata = (address: string): boolean => METADATA_RANGES.some((range) => isIn(address, range));
function isIn(address: string, range: string): boolean {
  const at = parseRange(address)?.first ?? -1;
  const { first, last } = parseRange(range) ?? { first: 0, last: -1 };
  return at >= first && at <= last;
}

/** Whether a policy that lists these gets to the address, on a host with these bounds. */
const opens = (bounds: NetworkBounds, allowList: readonly string[], address: string): boolean => {
  const policy = parsePolicy({ ...DENY_ALL, allowOutbound: true, allowList });
  return judgeAddress({ ...policy, bounds }, address).kind === "allowed";
};
/** Ways to list an address: by itself, by its range, and by ranges that cover everything. */
const listsOf = (address: string, range: string): readonly (readonly string[])[] => [
  [],
  [address],
  [range],
  ["0.0.0.0/0"],
  ["0.0.0.0/1", "128.0.0.0/1"],
  [address, range, "0.0.0.0/0", "example.org"],
];

describe("closed ranges", () => {
  it.each([...PRIVATE_RANGES, ...METADATA_RANGES, ...UNREACHABLE_RANGES])(
    "%s: no list opens it unless the operator does",
    (range) => {
      for (const address of samplesOf(range))
        for (const list of listsOf(address, range))
          expect([address, list, opens(NONE, list, address)]).toEqual([address, list, false]);
    },
  );

  it.each(PRIVATE_RANGES)("%s: a list that names it opens it if privateRanges has it, except for metadata", (range) => {
    const own = new NetworkBounds({ privateRanges: [range], allowMetadata: false });
    for (const address of samplesOf(range).filter((each) => !isMetadata(each))) {
      const opening = listsOf(address, range).map((list) => opens(own, list, address));
      expect([address, opening]).toEqual([address, [false, true, true, false, false, true]]);
    }
    for (const metadata of METADATA_RANGES.flatMap(samplesOf))
      expect(opens(ALL_PRIVATE, [metadata, range], metadata)).toBe(false);
  });

  it.each(METADATA_RANGES)(
    "%s: a list that names it opens it where allowMetadata is on, and by itself alone",
    (range) => {
      const own = new NetworkBounds({ privateRanges: [], allowMetadata: true });
      for (const address of samplesOf(range)) {
        const opening = listsOf(address, range).map((list) => opens(own, list, address));
        expect([address, opening]).toEqual([address, [false, true, true, false, false, true]]);
      }
      expect(opens(own, ["10.0.0.0/8"], "10.0.0.1")).toBe(false);
    },
  );

  it.each(UNREACHABLE_RANGES)("%s: no setting opens it", (range) => {
    for (const address of samplesOf(range))
      for (const list of listsOf(address, range)) expect(opens(EVERYTHING, list, address)).toBe(false);
    expect(privateRangeFault(range)).toContain("is not a range within");
  });

  it("stay closed for every allow list of a tenant, names included", () => {
    const closed = fc
      .tuple(
        fc.constantFrom(...PRIVATE_RANGES, ...METADATA_RANGES, ...UNREACHABLE_RANGES),
        fc.double({ min: 0, max: 1, noNaN: true }),
      )
      .map(([range, place]) => {
        const { first, last } = parseRange(range) ?? { first: 0, last: 0 };
        return formatAddress(first + Math.floor(place * (last - first)));
      });
    const entry = (address: string) =>
      fc.oneof(
        fc.nat(32).map((length) => `${address}/${String(length)}`),
        fc.tuple(fc.ipV4(), fc.nat(32)).map(([base, length]) => `${base}/${String(length)}`),
        fc.domain(),
        fc.constantFrom(address, "0.0.0.0/0", "128.0.0.0/1", "*.example.org"),
      );
    const cases = closed.chain((address) => fc.tuple(fc.constant(address), fc.array(entry(address), { maxLength: 8 })));
    fc.assert(
      fc.property(cases, fc.boolean(), ([address, allowList], allowMetadata) => {
        const policy: NetworkPolicy = parsePolicy({ ...DENY_ALL, allowOutbound: true, allowList });
        for (const judge of [judgeAddress, judgeAnswer])
          expect(judge({ ...policy, bounds: NONE }, address).kind).toBe("refused");
        // What an operator does open is reached by naming it, so the refusals above are the settings' doing.
        const opened = { ...policy, bounds: new NetworkBounds({ privateRanges: PRIVATE_RANGES, allowMetadata }) };
        if (isMetadata(address) && !allowMetadata) expect(judgeAddress(opened, address).kind).toBe("refused");
      }),
      { numRuns: 2000 },
    );
  });

  it("are listed with the setting that closes each", () => {
    const told = (bounds: NetworkBounds) =>
      bounds.shutRanges().map(({ range, setting }) => `${range} ${setting ?? "-"}`);
    expect(told(NONE)).toEqual(
      expect.arrayContaining(["169.254.169.0/24 allowMetadata", "10.0.0.0/8 privateRanges", "127.0.0.0/8 -"]),
    );
    const some = told(new NetworkBounds({ privateRanges: ["10.0.0.0/9"], allowMetadata: true }));
    expect(some).toEqual(expect.arrayContaining(["10.128.0.0/9 privateRanges", "198.18.0.0/15 -"]));
    expect(some.join()).not.toContain("allowMetadata");
    expect(told(EVERYTHING)).toEqual(UNREACHABLE_RANGES.map((range) => `${range} -`));
  });

  it.each(["0.0.0.0/0", "10.0.0.0/7", "198.18.0.0/15", "1.1.1.1", "fd00::/8", "x", "10.0.0.0/33"])(
    "cannot be opened by the setting %s",
    (entry) => {
      expect(privateRangeFault(entry)).toContain(JSON.stringify(entry));
    },
  );
});
