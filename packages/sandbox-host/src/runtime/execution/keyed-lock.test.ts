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
});
