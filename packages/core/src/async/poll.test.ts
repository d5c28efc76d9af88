import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "../testing/manual-clock.ts";
import { poll } from "./poll.ts";
import { exponential } from "./retry.ts";

describe("poll", () => {
  it("looks at once and returns what it sees, without a pause", async () => {
    const clock = createManualClock();
    expect(await poll(() => "seen", { clock, everyMs: 100 })).toBe("seen");
    expect(await poll(async () => false, { clock, everyMs: 100 })).toBe(false);
    expect(clock.monotonicMs()).toBe(0);
  });

  it("looks again after each pause, which may grow", async () => {
    const clock = createManualClock();
    const atMs: number[] = [];
    const look = (looks: number): string | undefined => {
      atMs.push(clock.monotonicMs());
      return looks === 4 ? "seen" : undefined;
    };
    const even = poll(look, { clock, everyMs: 10 });
    await clock.advance(30);
    expect([await even, atMs.splice(0)]).toEqual(["seen", [0, 10, 20, 30]]);
    const growing = poll(look, { clock, everyMs: exponential({ firstMs: 10, longestMs: 100 }) });
    await clock.advance(70);
    expect([await growing, atMs]).toEqual(["seen", [30, 40, 60, 100]]);
  });

  it("looks a last time at the end, and returns undefined then", async () => {
    const clock = createManualClock();
    const atMs: number[] = [];
    const look = (): string | undefined => {
      atMs.push(clock.monotonicMs());
      return undefined;
    };
    const polling = poll(look, { clock, everyMs: 10, atMostMs: 25 });
    await clock.advance(25);
    expect(await polling).toBeUndefined();
    expect(atMs).toEqual([0, 10, 20, 25]);
    atMs.splice(0);
    const last = await poll(look, { clock, everyMs: 10, atMostMs: 0 });
    expect(last).toBeUndefined();
    expect(atMs).toEqual([25]);
  });

  it("rejects with what a look throws, and with the signal's own reason", async () => {
    const clock = createManualClock();
    const reason = new Error("enough");
    const thrower = (): never => {
      throw reason;
    };
    await expect(poll(thrower, { clock, everyMs: 10 })).rejects.toBe(reason);
    let looks = 0;
    const look = (): string | undefined => {
      looks += 1;
      return undefined;
    };
    await expect(poll(look, { clock, everyMs: 10, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const over = new AbortController();
    const polling = poll(look, { clock, everyMs: 10, signal: over.signal });
    const end = expect(polling).rejects.toBe(reason);
    await clock.advance(15);
    over.abort(reason);
    await end;
    expect([looks, clock.sleeping]).toEqual([2, 0]);
  });
});
