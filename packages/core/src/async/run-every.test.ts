import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "../testing/manual-clock.ts";
import { runEvery } from "./run-every.ts";

describe("runEvery", () => {
  it("works at once, after each interval, and on after a failure, until the signal aborts", async () => {
    const clock = createManualClock();
    const over = new AbortController();
    const failures: unknown[] = [];
    let rounds = 0;
    const work = async (): Promise<void> => {
      await Promise.resolve();
      rounds += 1;
      if (rounds === 2) throw new Error("a bad round");
    };
    const loop = runEvery(work, {
      clock,
      intervalMs: 1000,
      signal: over.signal,
      onFailure: (failure) => failures.push(failure),
    });
    await clock.advance(0);
    expect(rounds).toBe(1);
    await clock.advance(3000);
    expect([rounds, failures]).toEqual([4, [new Error("a bad round")]]);
    over.abort();
    await loop;
    expect(clock.sleeping).toBe(0);
  });

  it("waits for the first round if that is wanted", async () => {
    const clock = createManualClock();
    const over = new AbortController();
    let rounds = 0;
    const work = (): Promise<void> => {
      rounds += 1;
      return Promise.resolve();
    };
    const options = { clock, intervalMs: 1000, signal: over.signal, onFailure: () => undefined };
    const loop = runEvery(work, { ...options, firstRound: "after_interval" });
    await clock.advance(999);
    expect(rounds).toBe(0);
    await clock.advance(1);
    expect(rounds).toBe(1);
    over.abort();
    await loop;
  });

  it("ends with the round that is under way, whose failure is not reported then", async () => {
    const clock = createManualClock();
    const over = new AbortController();
    const round = Promise.withResolvers<void>();
    const failures: unknown[] = [];
    const loop = runEvery(() => round.promise, {
      clock,
      intervalMs: 1000,
      signal: over.signal,
      onFailure: (failure) => failures.push(failure),
    });
    over.abort();
    round.reject(new Error("cut off"));
    await loop;
    expect(failures).toEqual([]);
  });

  it("does nothing once the signal has aborted", async () => {
    const work = (): never => {
      throw new Error("was begun");
    };
    const options = { clock: createManualClock(), intervalMs: 1, onFailure: work };
    await runEvery(work, { ...options, signal: AbortSignal.abort() });
  });
});
