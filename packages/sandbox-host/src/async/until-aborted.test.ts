import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { untilAborted } from "./until-aborted.ts";

describe("untilAborted", () => {
  it("passes the result and the failure of the work on", async () => {
    const { signal } = new AbortController();
    expect(await untilAborted(Promise.resolve(1), signal)).toBe(1);
    await expect(untilAborted(Promise.reject(new Error("no")), signal)).rejects.toThrow("no");
  });

  it("throws the reason of the signal, before and during the wait", async () => {
    const forever = new Promise<never>(() => undefined);
    await expect(untilAborted(forever, AbortSignal.abort())).rejects.toMatchObject({ reason: "CANCELLED" });
    const leave = new AbortController();
    const waiting = untilAborted(forever, leave.signal);
    const reason = new SandboxError("SESSION_DESTROYING", "gone");
    leave.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });

  it("ignores a failure of the work that comes after the abort", async () => {
    const work = Promise.withResolvers<never>();
    await expect(untilAborted(work.promise, AbortSignal.abort())).rejects.toMatchObject({ reason: "CANCELLED" });
    work.reject(new Error("late"));
    await work.promise.catch(() => undefined);
  });
});
