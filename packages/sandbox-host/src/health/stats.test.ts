import { describe, expect, it } from "@jest/globals";
import { createRig } from "../session/rig.suite.ts";
import { parseMemInfo, readHostStats } from "./stats.ts";

describe("readHostStats", () => {
  it("reports the machine, the sessions and the service", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    await rig.add();
    using _tool = session.gate.enter();
    const stats = await readHostStats(rig);
    expect(stats).toMatchObject({ atMs: rig.clock.nowMs(), sessionCount: 2, activeTools: 1 });
    expect(stats.cpus).toBeGreaterThan(0);
    expect(stats.loadAverage).toBeGreaterThanOrEqual(0);
    expect(stats.memoryAvailableBytes).toBeGreaterThan(0);
    expect(stats.memoryAvailableBytes).toBeLessThanOrEqual(stats.memoryBytes);
    expect(stats.serviceMemoryBytes).toBeGreaterThan(1024 * 1024);
  });
});

describe("parseMemInfo", () => {
  it("reads the fields that are there, and returns undefined for others", () => {
    const text = "MemTotal:        8000000 kB\nMemFree:           10 kB\nMemAvailable:    4000000 kB\n";
    expect(parseMemInfo(text)).toEqual({ totalBytes: 8_192_000_000, availableBytes: 4_096_000_000 });
    expect(parseMemInfo("")).toEqual({ totalBytes: undefined, availableBytes: undefined });
  });
});
