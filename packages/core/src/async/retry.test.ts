import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "../testing/manual-clock.ts";
import { exponential, retry, steps } from "./retry.ts";

const failing = (times: number): ((failures: number) => Promise<string>) => {
  return async (failures) => {
    if (failures < times) throw new Error(`failure ${failures + 1}`);
    return `after ${failures}`;
  };
};

describe("pauses", () => {
  it("grow by a factor up to the longest one", () => {
    const pauseMs = exponential({ firstMs: 100, longestMs: 1000 });
    expect([1, 2, 3, 4, 5, 500].map(pauseMs)).toEqual([100, 200, 400, 800, 1000, 1000]);
    expect(exponential({ firstMs: 10, longestMs: 100, factor: 3 })(3)).toBe(90);
  });

  it("have a share that chance decides", () => {
    const at = (chance: number): number =>
      exponential({ firstMs: 100, longestMs: 1000, jitter: 0.5, random: () => chance })(1);
    expect([0, 0.5, 1].map(at)).toEqual([50, 75, 100]);
    expect(() => exponential({ firstMs: 1, longestMs: 1, jitter: 0.5 })).toThrow(RangeError);
  });

  it("come from a list, the last one again and again", () => {
    expect([0, 1, 2, 3, 9].map(steps([1, 5, 10]))).toEqual([1, 1, 5, 10, 10]);
  });
});

describe("retry", () => {
  const pauseMs = exponential({ firstMs: 100, longestMs: 400 });

  it("tries until an attempt succeeds, with a pause after each failure", async () => {
    const clock = createManualClock();
    const seen: number[] = [];
    const trying = retry(failing(3), { clock, pauseMs, onRetry: (_, failures) => seen.push(failures) });
    await clock.advance(699);
    expect(seen).toEqual([1, 2, 3]);
    await clock.advance(1);
    expect(await trying).toBe("after 3");
    expect(clock.monotonicMs()).toBe(700);
  });

  it("throws the last failure after its attempts, or when the next one would be too late", async () => {
    const clock = createManualClock();
    const counted = retry(failing(9), { clock, pauseMs, attempts: 3 }).catch(String);
    await clock.advance(300);
    expect(await counted).toBe("Error: failure 3");
    const timed = retry(failing(9), { clock, pauseMs, patienceMs: 300 }).catch(String);
    await clock.advance(300);
    expect(await timed).toBe("Error: failure 3");
    expect(clock.sleeping).toBe(0);
  });

  it("throws a failure that does not pass, and waits as long as one says", async () => {
    const clock = createManualClock();
    const passes = (failure: unknown): boolean | number => (String(failure).endsWith("1") ? 5000 : false);
    const trying = retry(failing(9), { clock, pauseMs, passes }).catch(String);
    await clock.advance(4999);
    expect(clock.sleeping).toBe(1);
    await clock.advance(1);
    expect(await trying).toBe("Error: failure 2");
  });

  it("ends a pause with the signal's own reason", async () => {
    const clock = createManualClock();
    const over = new AbortController();
    const reason = new Error("enough");
    const trying = retry(failing(9), { clock, pauseMs, signal: over.signal });
    const end = expect(trying).rejects.toBe(reason);
    await clock.advance(50);
    over.abort(reason);
    await end;
    expect(clock.sleeping).toBe(0);
  });
});
