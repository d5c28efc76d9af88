import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { mapConcurrent } from "./map-concurrent.ts";

describe("mapConcurrent", () => {
  it("returns the results in the order of the items, with at most so many at a time", async () => {
    const items = fc.array(fc.nat({ max: 4 }), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(items, fc.integer({ min: 1, max: 6 }), async (turns, limit) => {
        let running = 0;
        const results = await mapConcurrent(turns, limit, async (pauses, index) => {
          running += 1;
          expect(running).toBeLessThanOrEqual(limit);
          for (let turn = 0; turn < pauses; turn += 1) await Promise.resolve();
          running -= 1;
          return index;
        });
        expect(results).toEqual(turns.map((_, index) => index));
      }),
      { numRuns: 200 },
    );
  });

  it("begins no further item after a failure, and throws it when what was begun has ended", async () => {
    const failure = new Error("second");
    const slow = Promise.withResolvers<void>();
    const begun: number[] = [];
    let state = "running";
    const mapping = mapConcurrent([0, 1, 2, 3], 2, async (item) => {
      begun.push(item);
      if (item === 1) throw failure;
      await slow.promise;
    }).finally(() => {
      state = "over";
    });
    const end = expect(mapping).rejects.toBe(failure);
    await new Promise((resolve) => setImmediate(resolve));
    expect([state, begun]).toEqual(["running", [0, 1]]);
    slow.resolve();
    await end;
    expect(begun).toEqual([0, 1]);
  });
});
