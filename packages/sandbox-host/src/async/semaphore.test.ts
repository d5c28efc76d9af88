import { describe, expect, it } from "@jest/globals";
import { Semaphore } from "./semaphore.ts";

const { signal } = new AbortController();

describe("Semaphore", () => {
  it("gives out as many permits as it has, and the next one when one comes back, in the order of the calls", async () => {
    const semaphore = new Semaphore(2);
    const releaseFirst = await semaphore.acquire(signal);
    await semaphore.acquire(signal);
    const order: string[] = [];
    const waiting = ["a", "b"].map(async (name) => {
      const release = await semaphore.acquire(signal);
      order.push(name);
      return release;
    });
    releaseFirst();
    // The second release frees nothing.
    releaseFirst();
    const release = await waiting[0];
    expect(order).toEqual(["a"]);
    release?.();
    await waiting[1];
    expect(order).toEqual(["a", "b"]);
  });

  it("skips a caller that stopped waiting", async () => {
    const semaphore = new Semaphore(1);
    const release = await semaphore.acquire(signal);
    const impatient = new AbortController();
    const waiting = semaphore.acquire(impatient.signal);
    impatient.abort();
    await expect(waiting).rejects.toMatchObject({ reason: "CANCELLED" });
    await expect(semaphore.acquire(impatient.signal)).rejects.toMatchObject({ reason: "CANCELLED" });
    release();
    expect(await semaphore.acquire(signal)).toBeInstanceOf(Function);
  });
});
