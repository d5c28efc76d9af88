import { describe, expect, it } from "@jest/globals";
import { systemClock } from "@turnbox/core";
import { createFrameChannel } from "./frames.ts";
import type { Progress } from "./output.ts";

const piece = (stream: Progress["stream"], text: string, offset: number): Progress => ({
  stream,
  data: Buffer.from(text),
  offset,
});

async function readAll(frames: AsyncIterable<Progress>): Promise<string[]> {
  const seen: string[] = [];
  for await (const { stream, data, offset } of frames) seen.push(`${stream}@${offset}:${Buffer.from(data).toString()}`);
  return seen;
}

describe("createFrameChannel", () => {
  it("joins neighbouring pieces of one stream and keeps the order between streams", async () => {
    const channel = createFrameChannel(systemClock);
    const reading = readAll(channel.frames());
    await channel.push(piece("stdout", "a", 0));
    await channel.push(piece("stdout", "b", 1));
    await channel.push(piece("stderr", "x", 0));
    await channel.push(piece("stdout", "c", 2));
    channel.end();
    expect(await reading).toEqual(["stdout@0:ab", "stderr@0:x", "stdout@2:c"]);
  });

  it("sends a small piece without waiting for more", async () => {
    const channel = createFrameChannel(systemClock);
    await channel.push(piece("stdout", "a", 0));
    const iterator = channel.frames()[Symbol.asyncIterator]();
    expect(Buffer.from(((await iterator.next()).value as Progress).data).toString()).toBe("a");
    channel.end();
    expect((await iterator.next()).done).toBe(true);
  });

  it("makes the tool wait while a megabyte is queued, and lets it go on when the reader is gone", async () => {
    const channel = createFrameChannel(systemClock);
    let released = false;
    const pushing = channel.push({ stream: "stdout", data: new Uint8Array(1024 * 1024), offset: 0 }).then(() => {
      released = true;
    });
    await new Promise((resolve) => void setImmediate(resolve));
    expect(released).toBe(false);
    channel.close();
    await pushing;
    await channel.push(piece("stdout", "dropped", 1024 * 1024));
    expect(await readAll(channel.frames())).toEqual([]);
  });
});
