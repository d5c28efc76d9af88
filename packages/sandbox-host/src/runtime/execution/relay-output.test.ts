import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { systemClock } from "@turnbox/core";
import { createLingeringOutputs } from "./lingering-outputs.ts";
import { relayOutput } from "./relay-output.ts";

const never = new AbortController().signal;

describe("a relayed output", () => {
  it("ends when its source does", async () => {
    const source = new PassThrough();
    const relay = relayOutput(source, { clock: systemClock, onLinger: () => undefined });
    source.end("all of it");
    expect(await text(relay.output)).toBe("all of it");
    await relay.consumed;
  });

  it("ends on drain although others hold the source, with all that was written before", async () => {
    const source = new PassThrough();
    const lingering: unknown[] = [];
    const relay = relayOutput(source, { clock: systemClock, onLinger: (held) => lingering.push(held) });
    const bytes = "x".repeat(500_000);
    source.write(bytes);
    const [read] = await Promise.all([text(relay.output), relay.drain(never)]);
    expect(read.length).toBe(bytes.length);
    expect(lingering).toEqual([source]);
    source.write("this is not read");
    await delay(0);
    expect(source.readableLength).toBe(0);
  });

  it("holds little while its reader does not read", async () => {
    const source = new PassThrough();
    const relay = relayOutput(source, { clock: systemClock, onLinger: () => undefined });
    for (let chunk = 0; chunk < 100; chunk += 1) source.write(Buffer.alloc(65_536));
    await delay(50);
    expect(relay.output.readableLength).toBeLessThanOrEqual(192 * 1024);
    expect(source.isPaused()).toBe(true);
  });

  it("waits for a slow reader, and gives it up at the limit", async () => {
    const source = new PassThrough();
    const relay = relayOutput(source, { clock: systemClock, onLinger: () => undefined });
    for (let chunk = 0; chunk < 10; chunk += 1) source.write(Buffer.alloc(65_536));
    const limit = new AbortController();
    let drained = false;
    const draining = relay.drain(limit.signal).then(() => {
      drained = true;
    });
    await delay(150);
    expect(drained).toBe(false);
    limit.abort();
    await draining;
    relay.output.resume();
    await relay.consumed;
  });

  it("takes nothing more while it is held, however fast its reader, and the rest on drain", async () => {
    const source = new PassThrough();
    const relay = relayOutput(source, { clock: systemClock, onLinger: () => undefined });
    let seenBytes = 0;
    relay.output.on("data", (chunk: Buffer) => (seenBytes += chunk.length));
    source.write(Buffer.alloc(1000));
    while (seenBytes < 1000) await delay(1);
    relay.hold();
    for (let chunk = 0; chunk < 5; chunk += 1) source.write(Buffer.alloc(65_536));
    await delay(50);
    expect(seenBytes).toBe(1000);
    await relay.drain(never);
    await relay.consumed;
    expect(seenBytes).toBe(1000 + 5 * 65_536);
  });

  it("goes on reading when its reader is gone", async () => {
    const source = new PassThrough();
    const relay = relayOutput(source, { clock: systemClock, onLinger: () => undefined });
    relay.output.destroy();
    await relay.consumed;
    for (let chunk = 0; chunk < 10; chunk += 1) source.write(Buffer.alloc(65_536));
    await delay(20);
    expect(source.readableLength).toBe(0);
  });
});

describe("lingering outputs", () => {
  it("are closed, the oldest first, when there are too many", () => {
    const outputs = createLingeringOutputs(2);
    const sources = [new PassThrough(), new PassThrough(), new PassThrough()];
    for (const source of sources) outputs.add(source);
    expect(sources.map(({ destroyed }) => destroyed)).toEqual([true, false, false]);
  });
});
