import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { untilStill } from "./heartbeat.ts";

const CALL = { signal: new AbortController().signal };

function watch() {
  const clock = createManualClock();
  const state = { beats: 0, still: false };
  void untilStill({ beats: () => state.beats, clock }, CALL).then(() => {
    state.still = true;
  });
  return { clock, state };
}

describe("untilStill", () => {
  it("settles after 10 s without a beat, and not before", async () => {
    const { clock, state } = watch();
    for (let ms = 0; ms < 9500; ms += 500) await clock.advance(500);
    expect(state.still).toBe(false);
    await clock.advance(500);
    expect(state.still).toBe(true);
  });

  it("never settles while there is a beat now and then", async () => {
    const { clock, state } = watch();
    for (let ms = 0; ms < 120_000; ms += 500) {
      if (ms % 9000 === 0) state.beats += 1;
      await clock.advance(500);
    }
    expect(state.still).toBe(false);
  });

  it("counts nothing of the time in which it did not run itself", async () => {
    // The machine was suspended again and again: each look comes an hour late, before the host could say anything.
    const state = { looks: 0, nowMs: 0, still: false };
    const sleep = async (ms: number): Promise<void> => {
      state.looks += 1;
      state.nowMs += ms + 3_600_000;
      if (state.looks > 15) await new Promise(() => undefined);
    };
    const clock = { nowMs: () => state.nowMs, monotonicMs: () => state.nowMs, sleep };
    void untilStill({ beats: () => 0, clock }, CALL).then(() => {
      state.still = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(state).toMatchObject({ looks: 16, still: false });
  });
});
