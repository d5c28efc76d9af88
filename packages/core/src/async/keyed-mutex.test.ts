import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { KeyedMutex } from "./keyed-mutex.ts";

const reason = new Error("enough");

describe("KeyedMutex", () => {
  it("lets work on other keys through, and forgets a key with its last work", async () => {
    const mutex = new KeyedMutex();
    const held = Promise.withResolvers<void>();
    const steps: string[] = [];
    const first = mutex.run("a", () => held.promise);
    const second = mutex.run("a", async () => void steps.push("a"));
    await mutex.run("b", async () => void steps.push("b"));
    expect([steps, mutex.size]).toEqual([["b"], 1]);
    held.resolve();
    await Promise.all([first, second]);
    expect([steps, mutex.size]).toEqual([["b", "a"], 0]);
  });

  it("lets a caller leave with its signal's own reason, and its work is not begun", async () => {
    const mutex = new KeyedMutex();
    const held = Promise.withResolvers<void>();
    const first = mutex.run("a", () => held.promise);
    const over = new AbortController();
    let begun = 0;
    const left = mutex.run("a", async () => void (begun += 1), over.signal);
    const third = mutex.run("a", async () => void (begun += 10));
    over.abort(reason);
    await expect(left).rejects.toBe(reason);
    await expect(mutex.run("a", async () => void (begun += 1), AbortSignal.abort(reason))).rejects.toBe(reason);
    held.resolve();
    await Promise.all([first, third]);
    expect([begun, mutex.size]).toEqual([10, 0]);
  });

  it("is idle when all work of all keys has ended, well or not", async () => {
    const mutex = new KeyedMutex<number>();
    await mutex.idle();
    const all = [1, 1, 2].map((key) => mutex.run(key, () => Promise.reject(reason)).catch(() => "failed"));
    await mutex.idle();
    expect(await Promise.all(all)).toEqual(["failed", "failed", "failed"]);
    expect(mutex.size).toBe(0);
  });

  it("keeps the order of each key and runs one at a time, with callers that leave", async () => {
    const call = fc.record({
      key: fc.constantFrom("a", "b", "c"),
      turns: fc.nat({ max: 3 }),
      leaves: fc.option(fc.nat({ max: 3 }), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 40 }), async (calls) => {
        const mutex = new KeyedMutex();
        const begun = new Map<string, number[]>();
        const running = new Set<string>();
        const work = async (index: number, key: string, turns: number): Promise<void> => {
          expect(running.has(key)).toBe(false);
          running.add(key);
          begun.set(key, [...(begun.get(key) ?? []), index]);
          for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
          running.delete(key);
        };
        await Promise.all(
          calls.map(async ({ key, turns, leaves }, index) => {
            const over = new AbortController();
            const run = mutex
              .run(key, () => work(index, key, turns), over.signal)
              .catch((thrown: unknown) => {
                expect(thrown).toBe(reason);
              });
            for (let turn = 0; turn < (leaves ?? 0); turn += 1) await Promise.resolve();
            if (leaves !== undefined) over.abort(reason);
            await run;
          }),
        );
        for (const order of begun.values()) expect(order).toEqual(order.toSorted((a, b) => a - b));
        const stayed = calls.filter(({ leaves }) => leaves === undefined).length;
        const begunInAll = [...begun.values()].reduce((sum, order) => sum + order.length, 0);
        expect(begunInAll).toBeGreaterThanOrEqual(stayed);
        expect(mutex.size).toBe(0);
      }),
      { numRuns: 300 },
    );
  });
});
