import { describe, expect, it } from "@jest/globals";
import { boundLimits, boundTtl, type Ceilings, checkCeilings, checkTtl } from "./ceilings.ts";

const CEILINGS: Ceilings = {
  cpus: 2,
  memoryBytes: 1000,
  pids: 100,
  quotaBytes: 50,
  ttlMs: 5000,
  unnamed: { pids: 100 },
};
const NOTHING = { limits: {}, quotaBytes: null, ttlMs: null };

describe("ceilings", () => {
  it.each([
    ["resources.cpus", "maxCpus", { limits: { cpus: 2.1 } }],
    ["resources.memory_bytes", "maxMemory", { limits: { memoryBytes: 1001 } }],
    ["resources.pids", "maxPids", { limits: { pids: 101 } }],
    ["quota_bytes", "maxSessionQuota", { quotaBytes: 51 }],
    ["ttl", "maxTtl", { ttlMs: 5001 }],
  ])("refuse more of %s, and name the setting", (field, key, more) => {
    expect(() => {
      checkCeilings({ ...NOTHING, ...more }, CEILINGS);
    }).toThrow(
      expect.objectContaining({ reason: "INVALID_ARGUMENT", message: expect.stringMatching(`^${field}: .*${key}`) }),
    );
    expect(() => {
      checkCeilings({ ...NOTHING, ...more }, { unnamed: {} });
    }).not.toThrow();
  });

  it("take what is equal to them, and nothing", () => {
    const limits = { cpus: 2, memoryBytes: 1000, pids: 100 };
    checkCeilings({ limits, quotaBytes: 50, ttlMs: 5000 }, CEILINGS);
    checkCeilings(NOTHING, CEILINGS);
    checkTtl(null, CEILINGS);
  });

  it("hold for what a fork takes over from a session that was made under others", () => {
    expect(boundLimits({ cpus: 8, memoryBytes: 10 }, CEILINGS)).toEqual({ cpus: 2, memoryBytes: 10, pids: 100 });
    expect(boundTtl(9000, CEILINGS)).toBe(5000);
    expect(boundTtl(null, CEILINGS)).toBeNull();
    expect(boundTtl(null, { ...CEILINGS, unnamedTtlMs: 5000 })).toBe(5000);
  });
});
