import { describe, expect, it } from "@jest/globals";
import { createChannel } from "./channel.ts";
import { pull } from "./pull.ts";

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("a channel", () => {
  it("makes its writer wait for its reader", async () => {
    const channel = createChannel<number>(() => Promise.resolve());
    let sent = 0;
    const writing = (async () => {
      for (const value of [1, 2, 3]) {
        await channel.send(value);
        sent += 1;
      }
      channel.end();
    })();
    await tick();
    expect(sent).toBe(0);
    const seen: number[] = [];
    for await (const value of channel) seen.push(value);
    await writing;
    expect(seen).toEqual([1, 2, 3]);
  });

  it("hands out what was sent before the failure, then the failure, once", async () => {
    const channel = createChannel<number>(() => Promise.resolve());
    const sending = channel.send(1);
    channel.end({ error: new Error("broke") });
    const reader = channel[Symbol.asyncIterator]();
    expect(await reader.next()).toEqual({ done: false, value: 1 });
    await sending;
    await expect(reader.next()).rejects.toThrow("broke");
    expect(await reader.next()).toEqual({ done: true, value: undefined });
  });

  it("throws everything away once drained or left, so that its writer goes on", async () => {
    const drained = createChannel<number>(() => Promise.resolve());
    const waiting = drained.send(1);
    drained.drain();
    await waiting;
    await drained.send(2);
    let leaves = 0;
    const left = createChannel<number>(() => {
      leaves += 1;
      return Promise.resolve();
    });
    void left.send(1);
    for await (const _value of left) break;
    await left.send(2);
    expect(leaves).toBe(1);
  });
});

describe("pull", () => {
  it("begins with the first look and is aborted when its reader leaves", async () => {
    const happened: string[] = [];
    const numbers = pull<number>(async (emit, { signal }) => {
      happened.push("begun");
      try {
        for (let value = 1; ; value += 1) await emit(value);
      } finally {
        happened.push(signal.aborted ? "aborted" : "ended");
      }
    }, undefined);
    await tick();
    expect(happened).toEqual([]);
    for await (const value of numbers) if (value === 3) break;
    expect(happened).toEqual(["begun", "aborted"]);
  });

  it("fails with what its source failed with, also when the outer signal is aborted meanwhile", async () => {
    const abort = new AbortController();
    const silent = pull<number>(async (emit) => {
      await emit(1);
      await emit(2);
      await emit(3);
    }, abort.signal);
    const reader = silent[Symbol.asyncIterator]();
    expect(await reader.next()).toMatchObject({ value: 1 });
    await tick();
    abort.abort(new Error("enough"));
    await tick();
    expect(await reader.next()).toMatchObject({ value: 2 });
    await expect(reader.next()).rejects.toThrow("enough");
  });
});
