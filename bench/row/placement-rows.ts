import { measurePlacement } from "../../test/sim/placement-scale.ts";
import type { Row } from "../row.ts";
import { median, type Point } from "../statistics.ts";

const FLEET = { instances: 10_000, sandboxesPerInstance: 100 };

const placement: Row = {
  id: "placement.10000",
  title: "placement of a create among 10,000 instances",
  unit: "ms",
  server: "none",
  bar: { kind: "below", value: 1 },
  growth: { of: "whole", things: "instances" },
  measure: async (bench) => {
    const creates = bench.count(1000, 200);
    const points: Point[] = [];
    for (const instances of [100, 1000, 3000, ...(bench.size === "full" ? [30_000] : [])]) {
      bench.signal.throwIfAborted();
      points.push({ x: instances, y: (await measurePlacement({ ...FLEET, instances, creates })).medianMs });
    }
    const ours: number[] = [];
    const tails: number[] = [];
    for (let round = bench.count(10, 3); round > 0; round -= 1) {
      const { medianMs, p99Ms } = await measurePlacement({ ...FLEET, creates });
      ours.push(medianMs);
      tails.push(p99Ms);
    }
    points.push({ x: FLEET.instances, y: median(ours) });
    const notes = [
      `a sample is the median of ${creates} creates; the worst p99 of them is ${Math.max(...tails).toFixed(2)} ms`,
    ];
    return { ours, points: points.toSorted((a, b) => a.x - b.x), notes };
  },
};

export const PLACEMENT_ROWS = [placement] as const;
