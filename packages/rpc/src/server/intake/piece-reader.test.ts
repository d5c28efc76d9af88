import { describe, expect, it } from "@jest/globals";
import { PieceReader } from "./piece-reader.ts";

const SHORT = 100;

async function* inPieces(whole: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < whole.length; at += size) yield await Promise.resolve(whole.subarray(at, at + size));
}

const WHOLE = Buffer.from(Array.from({ length: 200_000 }, (_, index) => index % 251));

describe("PieceReader", () => {
  it.each([1, 7, SHORT, 8192, 70_000, WHOLE.length])("reads by lengths what comes in pieces of %d", async (size) => {
    const reader = new PieceReader(inPieces(WHOLE, size));
    const read: Uint8Array[] = [];
    for (const count of [5, 1, 100_000, 3]) read.push(await reader.read(count));
    expect(read.map(({ length }) => length)).toEqual([5, 1, 100_000, 3]);
    const rest = await reader.read(WHOLE.length);
    expect(Buffer.concat([...read, rest]).equals(WHOLE)).toBe(true);
    expect((await reader.read(10)).length).toBe(0);
  });

  it("stops at what its caller throws", async () => {
    let pulled = 0;
    const endless = async function* (): AsyncGenerator<Uint8Array> {
      for (;;) {
        pulled += 1;
        yield await Promise.resolve(new Uint8Array(SHORT));
      }
    };
    const stop = (sum: number): void => {
      if (sum > 1000) throw new Error("enough");
    };
    await expect(new PieceReader(endless()).read(1_000_000, stop)).rejects.toThrow("enough");
    expect(pulled).toBe(11);
  });

  it("gives a piece that is whole as it is", async () => {
    const reader = new PieceReader(inPieces(WHOLE, WHOLE.length));
    const read = await reader.read(WHOLE.length + 1);
    expect(read.buffer).toBe(WHOLE.buffer);
  });
});
