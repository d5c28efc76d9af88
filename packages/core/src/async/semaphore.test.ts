import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { Semaphore } from "./semaphore.ts";

const reason = new Error("enough");
const settled = async (): Promise<void> => {
  await new Promise((resolve) => setImmediate(resolve));
};

describe("Semaphore", () => {
  it("gives permits while there are some, then lets callers wait", async () => {
    const semaphore = new Semaphore(2);
    const [first] = [await semaphore.acquire(), await semaphore.acquire()];
    expect([semaphore.free, semaphore.tryAcquire()]).toEqual([0, undefined]);
    const third = semaphore.acquire();
    await settled();
    expect(semaphore.waiting).toBe(1);
    first[Symbol.dispose]();
    (await third)[Symbol.dispose]();
    expect([semaphore.free, semaphore.waiting]).toEqual([1, 0]);
  });

  it("takes a permit back once, however often it is disposed of", async () => {
    const semaphore = new Semaphore(1);
    const permit = await semaphore.acquire();
    permit[Symbol.dispose]();
    permit[Symbol.dispose]();
    expect(semaphore.free).toBe(1);
  });

  it("lets no caller overtake those that wait", async () => {
    const semaphore = new Semaphore(1);
    const permit = await semaphore.acquire();
    const order: string[] = [];
    const waiting = semaphore.run(async () => void order.push("waiting"));
    permit[Symbol.dispose]();
    expect(semaphore.tryAcquire()).toBeUndefined();
    await Promise.all([waiting, semaphore.run(async () => void order.push("later"))]);
    expect(order).toEqual(["waiting", "later"]);
  });

  it("gives the permit back when the work fails, also if it throws at once", async () => {
    const semaphore = new Semaphore(1);
    await expect(semaphore.run(() => Promise.reject(reason))).rejects.toBe(reason);
    const thrower = (): Promise<void> => {
      throw reason;
    };
    await expect(semaphore.run(thrower)).rejects.toBe(reason);
    expect(semaphore.free).toBe(1);
  });

  it("rejects with the signal's own reason before, during and right after the wait, and does not begin the work", async () => {
    const semaphore = new Semaphore(1);
    const never = (): Promise<void> => {
      throw new Error("was begun");
    };
    await expect(semaphore.run(never, AbortSignal.abort(reason))).rejects.toBe(reason);
    const permit = await semaphore.acquire();
    const [during, after] = [new AbortController(), new AbortController()];
    const waiting = [semaphore.run(never, during.signal), semaphore.run(never, after.signal)];
    during.abort(reason);
    await expect(waiting[0]).rejects.toBe(reason);
    permit[Symbol.dispose]();
    after.abort(reason);
    await expect(waiting[1]).rejects.toBe(reason);
    expect([semaphore.free, semaphore.waiting]).toEqual([1, 0]);
  });

  it.each([0, -1, 1.5, Number.NaN])("refuses %j permits", (permits) => {
    expect(() => new Semaphore(permits)).toThrow(RangeError);
  });

  it("is never over its bound, in order and whole again after thousands of callers that come, leave and give back", async () => {
    const caller = fc.record({
      /** How many turns of the event loop it works, and after how many it is cancelled. */
      turns: fc.nat({ max: 3 }),
      cancelAfter: fc.option(fc.nat({ max: 4 }), { nil: undefined }),
      fails: fc.boolean(),
    });
    const callers = fc.array(caller, { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 5 }), callers, async (permits, all) => {
        const semaphore = new Semaphore(permits);
        const begun: number[] = [];
        let running = 0;
        const work = async (index: number): Promise<void> => {
          begun.push(index);
          running += 1;
          expect(running).toBeLessThanOrEqual(permits);
          for (let turn = 0; turn < (all[index]?.turns ?? 0); turn += 1) await Promise.resolve();
          running -= 1;
          if (all[index]?.fails === true) throw new Error("work");
        };
        const ends = all.map(async ({ cancelAfter }, index) => {
          const over = new AbortController();
          const end = semaphore
            .run(() => work(index), over.signal)
            .then(
              () => "done",
              (thrown: unknown) => (thrown === reason ? "left" : "failed"),
            );
          if (cancelAfter !== undefined) {
            for (let turn = 0; turn < cancelAfter; turn += 1) await Promise.resolve();
            over.abort(reason);
          }
          return [index, await end] as const;
        });
        const outcomes = new Map(await Promise.all(ends));
        expect(begun).toEqual(begun.toSorted((a, b) => a - b));
        for (const [index, outcome] of outcomes) {
          const expected = begun.includes(index) ? (all[index]?.fails === true ? "failed" : "done") : "left";
          expect([index, outcome]).toEqual([index, expected]);
        }
        expect([semaphore.free, semaphore.waiting, running]).toEqual([permits, 0, 0]);
      }),
      { numRuns: 300 },
    );
  });
});
