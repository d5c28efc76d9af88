import { describe, expect, it } from "@jest/globals";
import { type CpuProfile, toCallTree } from "./call-tree.ts";
import { drawFlames } from "./flame-graph.ts";

const frame = (functionName: string, url = "") => ({ functionName, url });

/** 600 us in `work`, 400 of them in what it calls, 1 us in `rare`, and a second of nothing. */
const PROFILE: CpuProfile = {
  nodes: [
    { id: 1, callFrame: frame("(root)"), children: [2, 4, 5, 6] },
    { id: 2, callFrame: frame("work", "file:///a/repo/packages/core/dist/line/line.js"), children: [3] },
    { id: 3, callFrame: frame("call", "file:///a/repo/node_modules/.pnpm/x@1/node_modules/@s/x/dist/x.js") },
    { id: 4, callFrame: frame("(idle)") },
    { id: 5, callFrame: frame("rare<T>", "node:fs") },
    { id: 6, callFrame: frame("work", "file:///a/repo/packages/core/dist/line/line.js") },
  ],
  samples: [2, 3, 4, 5, 6],
  timeDeltas: [100, 400, 1_000_000, 1, 100],
};

describe("a call tree", () => {
  it("has the time of work alone, and calls of one name from one place as one", () => {
    expect(toCallTree(PROFILE)).toEqual({
      name: "all",
      totalUs: 601,
      children: [
        { name: "work core/line.js", totalUs: 600, children: [{ name: "call @s/x/x.js", totalUs: 400, children: [] }] },
        { name: "rare<T> fs", totalUs: 1, children: [] },
      ],
    });
  });
});

describe("a flame graph", () => {
  const svg = drawFlames("row", [{ title: "host", tree: toCallTree(PROFILE) }]);

  it("is the same for the same profile", () => {
    expect(drawFlames("row", [{ title: "host", tree: toCallTree(PROFILE) }])).toBe(svg);
  });

  it("shows each call as wide as it took, below its caller, and leaves out what is too narrow to see", () => {
    expect(svg).toContain("work core/line.js 0.6 ms 99.8 %");
    expect(svg).toContain("call @s/x/x.js 0.4 ms 66.6 %");
    expect(svg).not.toContain("rare");
    const tops = [...svg.matchAll(/<rect x="[^"]+" y="([^"]+)"/g)].map(([, y]) => Number(y));
    expect(tops[1]).toBeGreaterThan(tops[0] ?? 0);
  });

  it("draws nothing for a process that did nothing", () => {
    const idle = { ...PROFILE, samples: [4], timeDeltas: [1000] };
    expect(drawFlames("row", [{ title: "host", tree: toCallTree(idle) }])).toContain("host: 0.0 ms of work");
  });
});
