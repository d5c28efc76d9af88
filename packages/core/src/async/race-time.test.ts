import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "../testing/manual-clock.ts";
import { raceTime } from "./race-time.ts";

describe("raceTime", () => {
  it("says that the work has ended, well or not, and holds no timer then", async () => {
    const clock = createManualClock();
    expect(await raceTime(Promise.resolve(1), { clock, atMostMs: 100 })).toBe("ended");
    expect(await raceTime(Promise.reject(new Error("work")), { clock, atMostMs: 100 })).toBe("ended");
    expect(clock.sleeping).toBe(0);
  });

  it("says that the work goes on after the time", async () => {
    const clock = createManualClock();
    const work = Promise.withResolvers<never>();
    const racing = raceTime(work.promise, { clock, atMostMs: 100 });
    await clock.advance(100);
    expect(await racing).toBe("goes_on");
    work.reject(new Error("late"));
    await clock.advance(1);
  });
});
