import { randomBytes } from "node:crypto";
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { describe, expect, it } from "@jest/globals";
import { FrameWriter, readFrames } from "./stream-frames.ts";

const damaged = { reason: "STREAM_DAMAGED" };
const written = (...parts: readonly Buffer[]): Promise<Buffer> =>
  buffer(Readable.from(parts).pipe(new FrameWriter({ beforeEnd: () => Promise.resolve() })));

/** Reads in parts of so many bytes. */
async function read(bytes: Buffer, partBytes = bytes.length): Promise<Buffer> {
  const parts = Array.from({ length: Math.ceil(bytes.length / partBytes) }, (_, index) =>
    bytes.subarray(index * partBytes, (index + 1) * partBytes),
  );
  const payloads: Buffer[] = [];
  for await (const payload of readFrames(Readable.from(parts, { objectMode: false }))) payloads.push(payload);
  return Buffer.concat(payloads);
}

describe("frames", () => {
  it("carry any bytes, in whatever parts they are written and read", async () => {
    const content = randomBytes(300_000);
    const bytes = await written(content.subarray(0, 1), content.subarray(1, 200_001), content.subarray(200_001));
    for (const partBytes of [bytes.length, 70_000, 4096, 777]) expect(await read(bytes, partBytes)).toEqual(content);
    expect(await read((await written()).subarray(), 1)).toEqual(Buffer.alloc(0));
  });

  it("show every flipped bit, before the payload that it is in is used", async () => {
    const bytes = await written(Buffer.from("first"), Buffer.from("second"));
    for (let place = 0; place < bytes.length; place += 1) {
      const flipped = Buffer.from(bytes);
      flipped[place]! ^= 1 << (place % 8);
      await expect(read(flipped)).rejects.toMatchObject(damaged);
    }
  });

  it("show every end that is too early, and what comes after the end", async () => {
    const bytes = await written(Buffer.from("first"), Buffer.from("second"));
    for (let end = 0; end < bytes.length; end += 1)
      await expect(read(bytes.subarray(0, end))).rejects.toMatchObject(damaged);
    await expect(read(Buffer.concat([bytes, Buffer.from("x")]))).rejects.toMatchObject(damaged);
  });

  it("show a part that is missing, and parts in another order", async () => {
    const bytes = await written(Buffer.from("aaaa"), Buffer.from("bbbb"), Buffer.from("cccc"));
    const frame = (index: number): Buffer => bytes.subarray(8 + index * 12, 20 + index * 12);
    const opening = bytes.subarray(0, 8);
    const end = bytes.subarray(44);
    expect(await read(Buffer.concat([opening, frame(0), frame(1), frame(2), end]))).toHaveLength(12);
    await expect(read(Buffer.concat([opening, frame(0), frame(2), end]))).rejects.toMatchObject(damaged);
    await expect(read(Buffer.concat([opening, frame(1), frame(0), frame(2), end]))).rejects.toMatchObject(damaged);
  });

  it("are never held in memory beyond one of them", async () => {
    const length = Buffer.alloc(8);
    length.writeUInt32LE(2 ** 31, 0);
    await expect(read(Buffer.concat([(await written()).subarray(0, 8), length]))).rejects.toMatchObject(damaged);
  });

  it("end only if what has to be true before is true", async () => {
    const failure = new Error("the sender failed");
    const writer = new FrameWriter({ beforeEnd: () => Promise.reject(failure) });
    const all = buffer(writer);
    writer.end("content");
    await expect(all).rejects.toBe(failure);
  });

  it("fail as their source does", async () => {
    const source = new PassThrough();
    const reading = readFrames(source).next();
    const failure = new Error("the connection is gone");
    source.destroy(failure);
    await expect(reading).rejects.toBe(failure);
  });
});
