import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "../error/sandbox-error.ts";
import { createManualClock } from "../testing/manual-clock.ts";
import { createDeadline } from "./deadline.ts";

describe("createDeadline", () => {
  it("ends after its time, as a deadline that passed", async () => {
    const clock = createManualClock();
    using deadline = createDeadline({ clock, ms: 100 });
    await clock.advance(99);
    expect(deadline.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(SandboxError.from(deadline.signal.reason).reason).toBe("DEADLINE_EXCEEDED");
  });

  it("ends with the caller, for the caller's reason, also where that has left before", () => {
    const clock = createManualClock();
    const caller = new AbortController();
    using early = createDeadline({ clock, ms: 100, signal: caller.signal });
    const reason = new Error("enough");
    caller.abort(reason);
    using late = createDeadline({ clock, ms: 100, signal: caller.signal });
    expect([early.signal.reason, late.signal.reason]).toEqual([reason, reason]);
  });

  it("holds no timer and never passes once it is disposed of", async () => {
    const clock = createManualClock();
    const caller = new AbortController();
    const deadline = createDeadline({ clock, ms: 100, signal: caller.signal });
    deadline[Symbol.dispose]();
    expect(clock.sleeping).toBe(0);
    await clock.advance(1000);
    expect(deadline.signal.aborted).toBe(false);
  });
});
