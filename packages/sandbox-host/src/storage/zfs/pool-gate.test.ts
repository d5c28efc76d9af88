import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { createPoolGate } from "./pool-gate.ts";

const { signal } = new AbortController();
const ended = (by: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    by.addEventListener("abort", () => {
      reject(by.reason as Error);
    });
  });

describe("PoolGate", () => {
  it("is refused until the storage is open, and again after it was closed", async () => {
    const gate = createPoolGate(createManualClock());
    await expect(gate.run(signal, () => Promise.resolve(1))).rejects.toMatchObject({
      reason: "STORAGE_UNAVAILABLE",
    });
    gate.open();
    expect(await gate.run(signal, () => Promise.resolve(1))).toBe(1);
    await gate.close();
    await expect(gate.run(signal, () => Promise.resolve(1))).rejects.toMatchObject({
      reason: "STORAGE_UNAVAILABLE",
    });
  });

  it("ends for those inside when it closes, and closing waits for them", async () => {
    const gate = createPoolGate(createManualClock());
    gate.open();
    const log: string[] = [];
    const inside = gate
      .run(signal, async (leave) => {
        await ended(leave).finally(() => log.push("left"));
      })
      .catch((thrown: unknown) => thrown);
    await gate.close();
    log.push("closed");
    expect(log).toEqual(["left", "closed"]);
    expect(await inside).toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
  });

  it("waits a bounded time for a caller that does not leave", async () => {
    const clock = createManualClock();
    const gate = createPoolGate(clock);
    gate.open();
    void gate.run(signal, () => new Promise(() => undefined));
    let closed = false;
    const closing = gate.close().then(() => {
      closed = true;
    });
    await clock.advance(4999);
    expect(closed).toBe(false);
    await clock.advance(1);
    await closing;
  });

  it("passes the caller's own cancellation on", async () => {
    const gate = createPoolGate(createManualClock());
    gate.open();
    const caller = new AbortController();
    const inside = gate.run(caller.signal, ended);
    const reason = new Error("enough");
    caller.abort(reason);
    await expect(inside).rejects.toBe(reason);
  });
});
