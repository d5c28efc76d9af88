import { describe, expect, it } from "@jest/globals";
import { calls, keepNewest, MAX_CALLS } from "./ledger.ts";

const row = (atMs: number, result: string | null = "{}") => ({
  callId: `c${atMs}`,
  payloadHash: "h",
  generation: 1,
  headGeneration: 1,
  status: "finished" as const,
  result,
  atMs,
});

describe("keepNewest", () => {
  it("keeps the newest, in the order that they had", () => {
    expect(keepNewest([row(3), row(1), row(5), row(2)], 2).map(({ atMs }) => atMs)).toEqual([3, 5]);
  });

  it("leaves out a result that is too large for a manifest, and what is beyond all that one holds", () => {
    const large = row(9, "x".repeat(256 * 1024 + 1));
    const rows = Array.from({ length: 50 }, (_, index) => row(index, "x".repeat(250 * 1024)));
    const kept = keepNewest([...rows, large, row(60, null)], MAX_CALLS);
    expect(kept.at(-1)).toEqual(row(60, null));
    expect(kept.length).toBeGreaterThan(25);
    expect(kept.length).toBeLessThan(35);
    expect(JSON.stringify(kept).length).toBeLessThan(9 * 1024 * 1024);
    expect(calls.decode(JSON.parse(JSON.stringify(kept)), "calls")).toEqual(kept);
  });
});
