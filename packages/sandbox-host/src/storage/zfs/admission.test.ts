import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { createAdmission } from "./admission.ts";

const { signal } = new AbortController();
const ended = (by: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    by.addEventListener("abort", () => {
      reject(by.reason as Error);
    });
  });

describe("admission to a storage", () => {
  it("is refused until the storage is open, and again after it was closed", async () => {
    const admission = createAdmission(createManualClock());
    await expect(admission.run(signal, () => Promise.resolve(1))).rejects.toMatchObject({
      reason: "STORAGE_UNAVAILABLE",
    });
    admission.open();
    expect(await admission.run(signal, () => Promise.resolve(1))).toBe(1);
    await admission.close();
    await expect(admission.run(signal, () => Promise.resolve(1))).rejects.toMatchObject({
      reason: "STORAGE_UNAVAILABLE",
    });
  });

  it("ends for those inside when it closes, and closing waits for them", async () => {
    const admission = createAdmission(createManualClock());
    admission.open();
    const log: string[] = [];
    const inside = admission
      .run(signal, async (leave) => {
        await ended(leave).finally(() => log.push("left"));
      })
      .catch((thrown: unknown) => thrown);
    await admission.close();
    log.push("closed");
    expect(log).toEqual(["left", "closed"]);
    expect(await inside).toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
  });

  it("is not held up for ever by one who does not leave", async () => {
    const clock = createManualClock();
    const admission = createAdmission(clock);
    admission.open();
    void admission.run(signal, () => new Promise(() => undefined));
    let closed = false;
    const closing = admission.close().then(() => {
      closed = true;
    });
    await clock.advance(4999);
    expect(closed).toBe(false);
    await clock.advance(1);
    await closing;
  });

  it("passes the caller's own cancellation on", async () => {
    const admission = createAdmission(createManualClock());
    admission.open();
    const caller = new AbortController();
    const inside = admission.run(caller.signal, ended);
    const reason = new Error("enough");
    caller.abort(reason);
    await expect(inside).rejects.toBe(reason);
  });
});
