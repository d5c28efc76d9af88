import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { createKeyedLock } from "./keyed-lock.ts";

describe("a keyed lock", () => {
  it("runs work of one key in order, also after a failure, and other keys at once", async () => {
    const lock = createKeyedLock();
    const order: string[] = [];
    const work = (name: string, ms: number) => async () => {
      await delay(ms);
      order.push(name);
    };
    const failing = lock.run("a", async () => {
      await delay(5);
      throw new Error("no");
    });
    await Promise.all([
      expect(failing).rejects.toThrow("no"),
      lock.run("a", work("first", 30)),
      lock.run("a", work("second", 0)),
      lock.run("b", work("other", 0)),
    ]);
    expect(order).toEqual(["other", "first", "second"]);
  });

  it("lets a waiting caller leave without beginning its work, and keeps the order of the others", async () => {
    const lock = createKeyedLock();
    const leaving = new AbortController();
    const hold = Promise.withResolvers<void>();
    const log: string[] = [];
    const first = lock.run("a", () => hold.promise);
    const left = lock.run("a", () => Promise.resolve(log.push("left")), leaving.signal);
    const last = lock.run("a", () => Promise.resolve(log.push("last")));
    leaving.abort();
    await expect(left).rejects.toMatchObject({ name: "AbortError" });
    expect(log).toEqual([]);
    hold.resolve();
    await Promise.all([first, last]);
    expect(log).toEqual(["last"]);
  });
});
