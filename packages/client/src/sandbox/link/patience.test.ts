import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { ERROR_TABLE, type Reason, SandboxError } from "@turnbox/core";
import { createManualClock, type ManualClock } from "@turnbox/core/testing";
import { createPatience, PATIENCE_MS, type Repeat } from "./patience.ts";

const REASONS = Object.keys(ERROR_TABLE) as Reason[];
const idle = new AbortController().signal;

/** How often a call that always fails like this is made, and after which time its caller is told. */
async function attempts(error: SandboxError, { repeat = "keyed", clock = createManualClock() }: Options = {}) {
  const patience = createPatience(clock);
  let count = 0;
  const failing = (async () => {
    for (;;) {
      count += 1;
      await patience.wait(error, { repeat, signal: idle });
    }
  })();
  failing.catch(() => undefined);
  await clock.advance(120_000);
  await expect(failing).rejects.toBe(error);
  return count;
}

interface Options {
  readonly repeat?: Repeat;
  readonly clock?: ManualClock;
}

describe("the patience of a call", () => {
  it.each(REASONS.filter((reason) => ERROR_TABLE[reason].retry === "never"))(
    "tells %s at once, as the table has it",
    async (reason) => {
      expect(await attempts(new SandboxError(reason, "x", { retryAfterMs: 10 }))).toBe(1);
    },
  );

  it.each(
    REASONS.filter((reason) => ERROR_TABLE[reason].retry !== "never" && ERROR_TABLE[reason].code === Code.Unavailable),
  )("waits for %s, for as long as it waits for anything", async (reason) => {
    const clock = createManualClock();
    expect(await attempts(new SandboxError(reason, "x"), { clock })).toBeGreaterThan(30);
  });

  it.each<Reason>(["SESSION_PAUSED", "TOOLS_IN_FLIGHT", "MAX_SESSIONS_REACHED", "DEADLINE_EXCEEDED"])(
    "tells %s at once: somebody has to do something first",
    async (reason) => {
      expect(await attempts(new SandboxError(reason, "x"))).toBe(1);
    },
  );

  it("asks again when it was told to, no sooner", async () => {
    const clock = createManualClock();
    const patience = createPatience(clock);
    const error = new SandboxError("OVERLOADED", "x", { retryAfterMs: 5000 });
    let state = "waiting";
    const waiting = patience.wait(error, { repeat: "keyed", signal: idle }).then(() => (state = "again"));
    await clock.advance(4999);
    expect(state).toBe("waiting");
    await clock.advance(1);
    await waiting;
    expect(state).toBe("again");
  });

  it("does not wait for a time that is further away than its patience", async () => {
    expect(await attempts(new SandboxError("RATE_LIMITED", "x", { retryAfterMs: PATIENCE_MS.busy + 1 }))).toBe(1);
  });

  it("makes a call without a key again only where the first one certainly had no effect", async () => {
    const unknown = new SandboxError("HOST_UNREACHABLE", "x", { admitted: "unknown" });
    const unsent = new SandboxError("HOST_UNREACHABLE", "x", { admitted: "no" });
    expect(await attempts(unknown, { repeat: "unkeyed" })).toBe(1);
    expect(await attempts(unsent, { repeat: "unkeyed" })).toBeGreaterThan(1);
    expect(await attempts(unknown)).toBeGreaterThan(1);
  });

  it("begins again when something arrived", async () => {
    const clock = createManualClock();
    const patience = createPatience(clock);
    const error = new SandboxError("HOST_UNREACHABLE", "x");
    const call = { repeat: "keyed", signal: idle } as const;
    for (let round = 0; round < 10; round += 1) {
      const waiting = patience.wait(error, call);
      await clock.advance(PATIENCE_MS.away / 3);
      await waiting;
      patience.progress();
    }
    const waiting = patience.wait(error, call);
    await clock.advance(PATIENCE_MS.away + 1);
    await waiting;
    await expect(patience.wait(error, call)).rejects.toBe(error);
  });

  it("ends with the caller's signal, and says what was waited for where a deadline passed", async () => {
    const wait = async (reason: unknown) => {
      const abort = new AbortController();
      const error = new SandboxError("HOST_UNREACHABLE", "x");
      const waiting = createPatience(createManualClock()).wait(error, { repeat: "keyed", signal: abort.signal });
      waiting.catch(() => undefined);
      abort.abort(reason);
      return await waiting.catch((thrown: unknown) => (thrown as SandboxError).reason);
    };
    expect(await wait(new DOMException("x", "AbortError"))).toBe("CANCELLED");
    expect(await wait(new DOMException("x", "TimeoutError"))).toBe("HOST_UNREACHABLE");
  });
});
