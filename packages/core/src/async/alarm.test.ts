import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "../testing/manual-clock.ts";
import { setAlarm } from "./alarm.ts";
import { systemClock } from "./clock.ts";

describe("setAlarm", () => {
  it("rings once, after its time", async () => {
    const clock = createManualClock();
    let rings = 0;
    setAlarm(clock, 100, () => (rings += 1));
    await clock.advance(99);
    expect(rings).toBe(0);
    await clock.advance(1000);
    expect(rings).toBe(1);
  });

  it("is silent once it is turned off, and leaves nothing behind", async () => {
    const clock = createManualClock();
    let rings = 0;
    const turnOff = setAlarm(clock, 100, () => (rings += 1));
    turnOff();
    turnOff();
    await clock.advance(1000);
    expect([rings, clock.sleeping]).toEqual([0, 0]);
  });

  it("rings by the real clock, also where no time is left", async () => {
    for (const ms of [5, 0, -1]) {
      const startMs = performance.now();
      await new Promise<void>((resolve) => void setAlarm(systemClock, ms, resolve));
      expect(performance.now() - startMs).toBeGreaterThanOrEqual(ms - 1);
    }
  });

  it("does not ring at once where it is set for longer than a timer can hold", async () => {
    const rings: number[] = [];
    const turnOff = [2 ** 33, Number.POSITIVE_INFINITY].map((ms) => setAlarm(systemClock, ms, () => rings.push(ms)));
    await systemClock.sleep(20);
    for (const off of turnOff) off();
    expect(rings).toEqual([]);
  });
});
