import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { ProgressWatch } from "./progress-watch.ts";

describe("ProgressWatch", () => {
  it("sees that nothing moves, once, and within twice the time", async () => {
    const clock = createManualClock();
    let stalls = 0;
    using watch = new ProgressWatch({ clock, patienceMs: 100, onStall: () => void (stalls += 1) });
    for (let step = 0; step < 5; step += 1) {
      watch.note();
      await clock.advance(90);
    }
    expect(stalls).toBe(0);
    await clock.advance(200);
    expect(stalls).toBe(1);
    await clock.advance(1000);
    expect(stalls).toBe(1);
  });

  it("sees nothing any more once it is disposed of", async () => {
    const clock = createManualClock();
    let stalls = 0;
    const watch = new ProgressWatch({ clock, patienceMs: 100, onStall: () => void (stalls += 1) });
    watch[Symbol.dispose]();
    await clock.advance(1000);
    expect(stalls).toBe(0);
  });
});
