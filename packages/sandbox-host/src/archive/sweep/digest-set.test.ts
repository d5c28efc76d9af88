import { createHash } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { DigestSet, END_OF_DIGESTS } from "./digest-set.ts";

const digests = Array.from({ length: 1000 }, (_, index) => createHash("sha256").update(`digest ${index}`).digest());

describe("DigestSet", () => {
  it("holds what was added, each once, and nothing else", () => {
    const set = new DigestSet({ start: 0, capacity: 2000 });
    for (const digest of [...digests.slice(0, 500), ...digests.slice(0, 500)]) set.add(digest);
    expect(set.size).toBe(500);
    expect(digests.map((digest) => set.has(digest))).toEqual(digests.map((_, index) => index < 500));
    expect(set.end).toBe(END_OF_DIGESTS);
  });

  it("covers all digests in rounds if it has no room for them at once", () => {
    const seen = new Map<string, number>();
    let rounds = 0;
    for (let start = 0; start < END_OF_DIGESTS; ) {
      const set = new DigestSet({ start, capacity: 100 });
      for (const digest of digests) set.add(digest);
      expect(set.size).toBeLessThanOrEqual(75);
      for (const digest of digests) {
        expect(set.has(digest)).toBe(set.covers(digest));
        if (set.has(digest)) seen.set(digest.toString("hex"), (seen.get(digest.toString("hex")) ?? 0) + 1);
      }
      start = set.end;
      rounds += 1;
    }
    expect(rounds).toBeGreaterThan(10);
    expect(seen.size).toBe(digests.length);
    expect([...seen.values()].every((count) => count === 1)).toBe(true);
  });
});
