import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "./manual-clock.ts";

describe("createManualClock", () => {
  it("wakes sleepers in the order of their time, and those that sleep again within the span", async () => {
    const clock = createManualClock({ nowMs: 1000 });
    const woken: string[] = [];
    const sleeper = async (name: string, ...waits: number[]): Promise<void> => {
      for (const ms of waits) {
        await clock.sleep(ms);
        woken.push(`${name}@${clock.monotonicMs()}`);
      }
    };
    const all = Promise.all([sleeper("late", 30), sleeper("twice", 10, 10)]);
    await clock.advance(29);
    expect(woken).toEqual(["twice@10", "twice@20"]);
    expect(clock.sleeping).toBe(1);
    await clock.advance(1);
    expect(woken.at(-1)).toBe("late@30");
    expect(clock.nowMs()).toBe(1030);
    await all;
  });

  it("rejects an aborted sleep with the reason and forgets it", async () => {
    const clock = createManualClock();
    const controller = new AbortController();
    const sleeping = clock.sleep(10, { signal: controller.signal });
    const reason = new Error("enough");
    controller.abort(reason);
    await expect(sleeping).rejects.toBe(reason);
    expect(clock.sleeping).toBe(0);
  });

  it("steps wall time without waking anybody", async () => {
    const clock = createManualClock({ nowMs: 0 });
    const sleeping = clock.sleep(10);
    clock.stepWallTime(-3_600_000);
    expect(clock.nowMs()).toBe(-3_600_000);
    expect(clock.monotonicMs()).toBe(0);
    expect(clock.sleeping).toBe(1);
    await clock.advance(10);
    await sleeping;
  });
});
