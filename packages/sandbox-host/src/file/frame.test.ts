import { PassThrough } from "node:stream";
import { describe, expect, it } from "@jest/globals";
import { createFrameReader, encodeFrame } from "./frame.ts";

const piece = (text: string): Buffer => encodeFrame({ kind: "piece", about: null }, Buffer.from(text));
const texts = (frame: { readonly body: Buffer } | null): string | undefined => frame?.body.toString();

describe("the frames of a stream", () => {
  it("come one by one, at whatever bytes they are cut", async () => {
    const stream = new PassThrough();
    const { next } = createFrameReader(stream);
    const bytes = Buffer.concat([piece("one"), piece("two"), piece("")]);
    for (const byte of bytes) stream.write(Buffer.of(byte));
    stream.end();
    expect([texts(await next()), texts(await next()), texts(await next())]).toEqual(["one", "two", ""]);
    expect(await next()).toBeNull();
  });

  it("carry a text unchanged, with any characters", async () => {
    const stream = new PassThrough();
    const { next } = createFrameReader(stream);
    const head = { kind: "done", output: { isError: false }, body: "content" } as const;
    stream.write(encodeFrame(head, "a\tgrün \u{1f600}\n"));
    const frame = await next();
    expect([texts(frame), frame?.head]).toEqual(["a\tgrün \u{1f600}\n", head]);
  });

  it("stay with the sender while they are not read", async () => {
    const stream = new PassThrough({ highWaterMark: 1024 });
    const { next } = createFrameReader(stream);
    const first = next();
    stream.write(Buffer.concat([piece("one"), piece("two")]));
    expect(texts(await first)).toBe("one");
    expect(stream.isPaused()).toBe(true);
    expect(stream.write(Buffer.alloc(1024))).toBe(false);
    expect(texts(await next())).toBe("two");
  });

  it("end when the reading is ended, also for a call that waits, and if the stream does not end", async () => {
    const { next, end } = createFrameReader(new PassThrough());
    const waiting = next();
    end();
    expect([await waiting, await next()]).toEqual([null, null]);
  });

  it("are refused if one is longer than the limit", async () => {
    const stream = new PassThrough();
    const { next } = createFrameReader(stream);
    stream.write(Buffer.alloc(8, 0xff));
    await expect(next()).rejects.toThrow("a frame is too long");
  });
});
