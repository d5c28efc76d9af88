import { describe, expect, it } from "@jest/globals";
import { raceSignal } from "./race-signal.ts";

/** A signal that counts who listens to it. */
function createCountedSignal() {
  const controller = new AbortController();
  const { signal } = controller;
  let listeners = 0;
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners += 1;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners -= 1;
    remove(...args);
  };
  return { signal, abort: controller.abort.bind(controller), listeners: () => listeners };
}

const reason = new Error("enough");

/** How a promise ends, or "pending" after all that is due has run. */
async function stateOf(work: Promise<unknown>): Promise<string> {
  const end = work.then(
    (value) => `fulfilled ${String(value)}`,
    (thrown: unknown) => `rejected ${String(thrown)}`,
  );
  const later = new Promise<string>((resolve) => setImmediate(resolve, "pending"));
  return await Promise.race([end, later]);
}

describe("raceSignal", () => {
  it("has the outcome of work that ends first, and leaves no listener behind", async () => {
    const { signal, abort, listeners } = createCountedSignal();
    await expect(raceSignal(Promise.resolve(1), signal)).resolves.toBe(1);
    await expect(raceSignal(Promise.reject(reason), signal)).rejects.toBe(reason);
    expect(listeners()).toBe(0);
    abort();
  });

  it("rejects with the signal's own reason, whatever that is", async () => {
    for (const own of [reason, "text", new DOMException("late", "TimeoutError")]) {
      const { signal, abort, listeners } = createCountedSignal();
      const racing = raceSignal(Promise.withResolvers<never>().promise, signal);
      expect(listeners()).toBe(1);
      abort(own);
      await expect(racing).rejects.toBe(own);
      expect(listeners()).toBe(0);
    }
  });

  it("rejects at once if the signal has aborted before, also if the work has ended", async () => {
    await expect(raceSignal(Promise.resolve(1), AbortSignal.abort(reason))).rejects.toBe(reason);
    await expect(raceSignal(Promise.reject(new Error("work")), AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  it("waits for the work alone if there is no signal", async () => {
    await expect(raceSignal(Promise.resolve(1), undefined)).resolves.toBe(1);
    await expect(raceSignal(Promise.reject(reason), undefined)).rejects.toBe(reason);
  });

  it("handles a failure of the work that comes after the abort", async () => {
    const unhandled: unknown[] = [];
    const onUnhandled = (thrown: unknown): void => void unhandled.push(thrown);
    process.on("unhandledRejection", onUnhandled);
    const work = Promise.withResolvers<never>();
    const over = new AbortController();
    const racing = raceSignal(work.promise, over.signal);
    over.abort(reason);
    await expect(racing).rejects.toBe(reason);
    work.reject(new Error("late"));
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", onUnhandled);
    expect(unhandled).toEqual([]);
  });

  it("settles once in each of thousands of races of work and abort", async () => {
    for (let round = 0; round < 5000; round += 1) {
      const { signal, abort, listeners } = createCountedSignal();
      const work = Promise.withResolvers<number>();
      const racing = raceSignal(work.promise, signal);
      const acts = [() => work.resolve(round), () => abort(reason)];
      if (round % 2 === 0) acts.reverse();
      for (const act of acts) {
        act();
        if (round % 3 === 0) await Promise.resolve();
      }
      expect(await stateOf(racing)).not.toBe("pending");
      expect(listeners()).toBe(0);
    }
  });
});
