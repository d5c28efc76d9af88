import { describe, expect, it } from "@jest/globals";
import { afterStep, type GraphStep, type HeadGraph, nextCollectStep, nextShrinkStep } from "./head-graph.ts";

const NOBODY: ReadonlySet<number> = new Set();

function run(start: HeadGraph, next: (graph: HeadGraph) => GraphStep | undefined) {
  const steps: GraphStep[] = [];
  let graph = start;
  for (let step = next(graph); step !== undefined && steps.length < 50; step = next(graph)) {
    steps.push(step);
    graph = afterStep(graph, step);
  }
  return { steps, graph };
}

const collect = (graph: HeadGraph, kept: number, busy = NOBODY) =>
  run(graph, (at) => nextCollectStep(at, { kept, busy }));

describe("nextCollectStep", () => {
  const chain: HeadGraph = {
    heads: [
      { generation: 1, snapshots: ["a", "b"] },
      { generation: 2, origin: "b", snapshots: ["c"] },
      { generation: 3, origin: "c", snapshots: [] },
    ],
    pinned: new Set(["a"]),
  };

  it("hands snapshots down the line, and each head goes as soon as it is empty", () => {
    const { steps, graph } = collect(chain, 3);
    expect(steps).toEqual([
      { kind: "promote", generation: 2, over: 1 },
      { kind: "destroy-head", generation: 1 },
      { kind: "promote", generation: 3, over: 2 },
      { kind: "destroy-head", generation: 2 },
    ]);
    expect(graph.heads).toEqual([{ generation: 3, snapshots: ["a", "b", "c"] }]);
  });

  it("goes on after a promotion whose destruction did not come", () => {
    const promoted = afterStep(chain, { kind: "promote", generation: 2, over: 1 });
    expect(promoted.heads[0]).toEqual({ generation: 1, origin: "b", snapshots: [] });
    expect(collect(promoted, 3).graph).toEqual(collect(chain, 3).graph);
  });

  it("leaves a head that is busy, and what it holds", () => {
    const { graph } = collect(chain, 3, new Set([1]));
    expect(graph.heads.map(({ generation }) => generation)).toEqual([1, 3]);
    expect(graph.heads[1]).toEqual({ generation: 3, origin: "b", snapshots: ["c"] });
  });

  it("leaves a head whose last snapshot only leads outside, or nowhere", () => {
    const heads = [
      { generation: 1, snapshots: ["a", "undo"] },
      { generation: 2, origin: "a", snapshots: [] },
    ];
    expect(collect({ heads, pinned: new Set(["undo"]) }, 2).steps).toEqual([]);
    expect(collect({ heads, pinned: new Set() }, 2).steps).toEqual([]);
  });

  it("gives snapshots to the kept line first", () => {
    const heads = [
      { generation: 1, snapshots: ["a"] },
      { generation: 2, origin: "a", snapshots: ["b"] },
      { generation: 3, origin: "a", snapshots: ["c"] },
      { generation: 4, origin: "c", snapshots: [] },
    ];
    const { graph } = collect({ heads, pinned: new Set() }, 4);
    expect(graph.heads).toEqual([
      { generation: 2, origin: "a", snapshots: ["b"] },
      { generation: 4, snapshots: ["a", "c"] },
    ]);
  });
});

describe("nextShrinkStep", () => {
  it("leaves the pinned snapshots, and one head for each end of a line", () => {
    const heads = [
      { generation: 1, snapshots: ["a", "b"] },
      { generation: 2, origin: "b", snapshots: ["c", "d"] },
      { generation: 3, origin: "a", snapshots: ["e"] },
      { generation: 4, origin: "d", snapshots: [] },
    ];
    const { graph } = run({ heads, pinned: new Set(["c"]) }, nextShrinkStep);
    expect(graph.heads).toEqual([{ generation: 2, snapshots: ["c"] }]);
  });

  it("keeps the snapshot where two pinned lines part", () => {
    const heads = [
      { generation: 1, snapshots: ["a", "b"] },
      { generation: 2, origin: "a", snapshots: ["c"] },
    ];
    const { graph, steps } = run({ heads, pinned: new Set(["b", "c"]) }, nextShrinkStep);
    expect(steps).toEqual([]);
    expect(graph.heads).toEqual(heads);
  });

  it("ends everything where nothing is pinned", () => {
    const heads = [
      { generation: 1, snapshots: ["a"] },
      { generation: 2, origin: "a", snapshots: ["b"] },
    ];
    expect(run({ heads, pinned: new Set() }, nextShrinkStep).graph.heads).toEqual([]);
  });
});
