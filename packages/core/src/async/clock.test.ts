import { describe, expect, it } from "@jest/globals";
import { systemClock } from "./clock.ts";

describe("systemClock", () => {
  it("sleeps at least as long as asked", async () => {
    const startMs = systemClock.monotonicMs();
    await systemClock.sleep(5);
    expect(systemClock.monotonicMs() - startMs).toBeGreaterThanOrEqual(5);
  });

  it("rejects with the signal's own reason, before and during the wait", async () => {
    const reason = new Error("enough");
    await expect(systemClock.sleep(60_000, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const controller = new AbortController();
    const sleeping = systemClock.sleep(60_000, { signal: controller.signal });
    controller.abort(reason);
    await expect(sleeping).rejects.toBe(reason);
  });

  it("does not wake at once from a sleep longer than a timer can hold", async () => {
    const controller = new AbortController();
    const outcome = systemClock.sleep(2 ** 33, { signal: controller.signal }).then(
      () => "woke",
      () => "aborted",
    );
    await systemClock.sleep(20);
    controller.abort();
    await expect(outcome).resolves.toBe("aborted");
  });

  it("takes zero and negative waits for no wait", async () => {
    await systemClock.sleep(0);
    await systemClock.sleep(-5);
  });
});
