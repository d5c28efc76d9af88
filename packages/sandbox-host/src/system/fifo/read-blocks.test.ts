import { expect, it } from "@jest/globals";
import type { OnReadOpts, Socket } from "node:net";
import { readInBlocks } from "./read-blocks.ts";

const KIB = 1024;

/** Reads as a socket does: asks for a place, fills its beginning, tells how much came. */
function createReads() {
  const pushed: Buffer[] = [];
  const stream = { push: (data: Buffer) => pushed.push(data) > 0 } as unknown as Socket;
  const bulky: number[] = [];
  const onBulky = (): void => void bulky.push(pushed.length);
  const { buffer, callback }: OnReadOpts = readInBlocks(() => stream, onBulky);
  const next = buffer as () => Uint8Array;
  return {
    pushed,
    bulky,
    read: (bytes: number, value: number): number => {
      const place = next();
      place.fill(value, 0, bytes);
      callback(bytes, place);
      return place.buffer.byteLength;
    },
  };
}

it("keeps what was read, whatever other streams read afterwards", () => {
  const [one, other] = [createReads(), createReads()];
  for (let value = 1; value <= 100; value += 1) {
    one.read(value % 3 === 0 ? 64 * KIB : value, value);
    other.read(value % 2 === 0 ? 64 * KIB : value, 255);
  }
  one.pushed.forEach((data, index) => {
    const value = index + 1;
    expect(data.length).toBe(value % 3 === 0 ? 64 * KIB : value);
    expect(data.every((byte) => byte === value)).toBe(true);
  });
});

it("puts what comes in bulk end to end", () => {
  const { pushed, read } = createReads();
  for (let count = 0; count < 40; count += 1) read(64 * KIB, count);
  const neighbours = pushed.filter((data, index) => {
    const before = pushed[index - 1];
    return before?.buffer === data.buffer && before.byteOffset + before.length === data.byteOffset;
  });
  expect(neighbours.length).toBeGreaterThan(30);
});

it("allocates no more than has come in bulk before, and nothing for little pieces", () => {
  const { pushed, read } = createReads();
  for (let count = 0; count < 50; count += 1) read(100, count);
  expect(new Set(pushed.map(({ buffer }) => buffer)).size).toBeLessThanOrEqual(2);
  let bulk = 0;
  for (let count = 0; count < 50; count += 1) {
    expect(read(20 * KIB, count)).toBeLessThanOrEqual(Math.max(bulk, 64 * KIB));
    bulk += 20 * KIB;
  }
});

it("tells once of a stream that brings a lot, and not of one that brings little at a time", () => {
  const [bulk, drops] = [createReads(), createReads()];
  for (let count = 0; count < 40; count += 1) bulk.read(64 * KIB, count);
  expect(bulk.bulky).toEqual([3]);
  for (let count = 0; count < 1000; count += 1) drops.read(KIB, count);
  expect(drops.bulky).toEqual([]);
});
