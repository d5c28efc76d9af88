import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { KeyedMutex } from "./keyed-mutex.ts";

describe("KeyedMutex", () => {
  it("runs work of one key in order, also after a failure, and other keys at once", async () => {
    const mutex = new KeyedMutex();
    const order: string[] = [];
    const work = (name: string, ms: number) => async () => {
      await delay(ms);
      order.push(name);
    };
    const failing = mutex.run("a", async () => {
      await delay(5);
      throw new Error("no");
    });
    await Promise.all([
      expect(failing).rejects.toThrow("no"),
      mutex.run("a", work("first", 30)),
      mutex.run("a", work("second", 0)),
      mutex.run("b", work("other", 0)),
    ]);
    expect(order).toEqual(["other", "first", "second"]);
  });

  it("does not begin the work of a caller that stops waiting, and keeps the order of the others", async () => {
    const mutex = new KeyedMutex();
    const leaving = new AbortController();
    const hold = Promise.withResolvers<void>();
    const log: string[] = [];
    const first = mutex.run("a", () => hold.promise);
    const left = mutex.run("a", () => Promise.resolve(log.push("left")), leaving.signal);
    const last = mutex.run("a", () => Promise.resolve(log.push("last")));
    leaving.abort();
    await expect(left).rejects.toMatchObject({ reason: "CANCELLED" });
    expect(log).toEqual([]);
    hold.resolve();
    await Promise.all([first, last]);
    expect(log).toEqual(["last"]);
  });
});
