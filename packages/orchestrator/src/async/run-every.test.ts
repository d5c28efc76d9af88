import { describe, expect, it } from "@jest/globals";
import { createLog } from "@turnbox/core";
import { createManualClock } from "@turnbox/core/testing";
import { runEvery } from "./run-every.ts";

describe("runEvery", () => {
  it("works at once, after each interval, and on after a failure, until it is stopped", async () => {
    const clock = createManualClock();
    const over = new AbortController();
    let rounds = 0;
    const loop = runEvery({
      work: async () => {
        await Promise.resolve();
        rounds += 1;
        if (rounds === 2) throw new Error("a bad round");
      },
      intervalMs: 1000,
      clock,
      log: createLog({ name: "test", level: "silent", to: { write: () => undefined } }),
      what: "test",
      signal: over.signal,
    });
    await clock.advance(0);
    expect(rounds).toBe(1);
    await clock.advance(3000);
    expect(rounds).toBe(4);
    over.abort();
    await loop;
    expect(clock.sleeping).toBe(0);
  });
});
