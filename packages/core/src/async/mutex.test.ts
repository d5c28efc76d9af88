import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { Mutex } from "./mutex.ts";

describe("Mutex", () => {
  it("runs work one after the other, in order, also after a failure", async () => {
    const mutex = new Mutex();
    const steps: string[] = [];
    const work = async (name: string): Promise<void> => {
      steps.push(`${name} begins`);
      await Promise.resolve();
      steps.push(`${name} ends`);
      if (name === "b") throw new Error("b");
    };
    const all = ["a", "b", "c"].map((name) => mutex.run(() => work(name)));
    expect(mutex.isBusy).toBe(true);
    await Promise.allSettled(all);
    expect(steps).toEqual(["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
    expect(mutex.isBusy).toBe(false);
  });

  it("is idle when all that was asked for before has ended", async () => {
    const mutex = new Mutex();
    await mutex.idle();
    const work = Promise.withResolvers<void>();
    let state = "busy";
    mutex.run(() => work.promise).catch(() => undefined);
    const idle = mutex.idle().then(() => {
      state = "idle";
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(state).toBe("busy");
    work.reject(new Error("work"));
    await idle;
    expect(state).toBe("idle");
  });

  it("loses no update of shared state, however work is cut up", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 5 }), { maxLength: 50 }), async (turns) => {
        const mutex = new Mutex();
        let count = 0;
        const add = async (pauses: number): Promise<void> => {
          const before = count;
          for (let turn = 0; turn < pauses; turn += 1) await Promise.resolve();
          count = before + 1;
        };
        await Promise.all(turns.map((pauses) => mutex.run(() => add(pauses))));
        expect(count).toBe(turns.length);
      }),
      { numRuns: 200 },
    );
  });
});
