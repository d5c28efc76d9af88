import { describe, expect, it } from "@jest/globals";
import { broadcast } from "./broadcast.ts";

async function* count(to: number, onPull: () => void = () => undefined) {
  for (let value = 1; value <= to; value += 1) {
    onPull();
    yield await Promise.resolve(value);
  }
}

const collect = async (source: AsyncIterable<number>): Promise<number[]> => {
  const values: number[] = [];
  for await (const value of source) values.push(value);
  return values;
};

describe("broadcast", () => {
  it("gives every reader everything, in order", async () => {
    const readers = broadcast(count(5), 3);
    expect(await Promise.all(readers.map(collect))).toEqual([
      [1, 2, 3, 4, 5],
      [1, 2, 3, 4, 5],
      [1, 2, 3, 4, 5],
    ]);
  });

  it("reads no further than the slowest reader", async () => {
    let pulled = 0;
    const [fast, slow] = broadcast(
      count(100, () => (pulled += 1)),
      2,
    );
    const reading = collect(fast ?? count(0));
    const slowReader = (slow ?? count(0))[Symbol.asyncIterator]();
    await slowReader.next();
    await new Promise((resolve) => setImmediate(resolve));
    expect(pulled).toBe(1);
    await slowReader.return?.();
    expect(await reading).toHaveLength(100);
  });

  it("goes on for the others when one stops, and ends the source when all did", async () => {
    let ended = false;
    async function* source() {
      try {
        yield* count(10);
      } finally {
        ended = true;
      }
    }
    const [first, second] = broadcast(source(), 2);
    const leaving = (async () => {
      for await (const value of first ?? count(0)) if (value === 2) break;
    })();
    const stopper = (second ?? count(0))[Symbol.asyncIterator]();
    for (let index = 0; index < 5; index += 1) await stopper.next();
    await leaving;
    expect(ended).toBe(false);
    await stopper.return?.();
    expect(ended).toBe(true);
  });

  it("fails every reader when the source fails", async () => {
    async function* source() {
      yield await Promise.resolve(1);
      throw new Error("cut off");
    }
    const outcomes = await Promise.allSettled(broadcast(source(), 2).map(collect));
    expect(outcomes.map((outcome) => outcome.status)).toEqual(["rejected", "rejected"]);
  });
});
