import { describe, expect, it } from "@jest/globals";
import { parseProcessUsage, readProcessUsage } from "./process-usage.ts";

describe("parseProcessUsage", () => {
  it("reads times and memory, also behind a name that looks like fields", () => {
    const stat = "7 (a) b) 1 2) S 1 7 7 0 -1 4194560 100 0 0 0 12 30 0 0 20 0 1 0 55 1000 10";
    expect(parseProcessUsage({ stat, status: "Name:\tx\nVmRSS:\t    2048 kB\n" })).toEqual({
      cpuMs: 420,
      memoryBytes: 2048 * 1024,
    });
  });

  it("takes a process that has ended for one that uses nothing", () => {
    expect(parseProcessUsage({ stat: "", status: "" })).toEqual({ cpuMs: 0, memoryBytes: 0 });
  });
});

describe("readProcessUsage", () => {
  it("sums up processes that live", async () => {
    const own = await readProcessUsage([process.pid, 2 ** 22 + 1]);
    expect(own.cpuMs).toBeGreaterThan(0);
    expect(own.memoryBytes).toBeGreaterThan(1024 * 1024);
  });
});
