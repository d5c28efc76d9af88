import { describe, expect, it } from "@jest/globals";
import type { Phase, Timing } from "../record/row.ts";
import { dueAction, extendTiming, startTiming, timingAfterResume } from "./timing.ts";

const ACTIVE: Phase = { kind: "active" };
const pausedAt = (sinceMs: number, cause: "request" | "timeout" = "request"): Phase => ({
  kind: "paused",
  sinceMs,
  cause,
});
const timingOf = (more: Partial<Timing> = {}): Timing => ({
  ttlMs: 1000,
  expiresAtMs: 11_000,
  idleTimeoutMs: null,
  onTimeout: "destroy",
  ...more,
});

describe("startTiming", () => {
  it("ends a ttl after now, and never without one", () => {
    expect(startTiming({ ttlMs: 1000, idleTimeoutMs: 5, onTimeout: "pause" }, 10_000)).toEqual({
      ttlMs: 1000,
      expiresAtMs: 11_000,
      idleTimeoutMs: 5,
      onTimeout: "pause",
    });
    expect(startTiming({ ttlMs: null, idleTimeoutMs: null, onTimeout: "destroy" }, 10_000).expiresAtMs).toBeNull();
  });
});

describe("timingAfterResume", () => {
  it("gives back the time of the pause where a timeout pauses", () => {
    const timing = timingOf({ onTimeout: "pause" });
    expect(timingAfterResume({ timing, phase: pausedAt(10_400) }, 20_400)).toEqual({ ...timing, expiresAtMs: 21_000 });
  });

  it("lets the pause eat the ttl where a timeout destroys", () => {
    const timing = timingOf();
    expect(timingAfterResume({ timing, phase: pausedAt(10_400) }, 20_400)).toEqual(timing);
  });

  it("begins the whole ttl again where nothing was left, to the millisecond", () => {
    const timing = timingOf({ onTimeout: "pause" });
    const after = (sinceMs: number) => timingAfterResume({ timing, phase: pausedAt(sinceMs, "timeout") }, 50_000);
    expect(after(11_000).expiresAtMs).toBe(51_000);
    expect(after(11_500).expiresAtMs).toBe(51_000);
    expect(after(10_999).expiresAtMs).toBe(50_001);
  });

  it("changes nothing without an end, without a pause, and under a clock that was set back", () => {
    const endless = timingOf({ onTimeout: "pause", ttlMs: null, expiresAtMs: null });
    expect(timingAfterResume({ timing: endless, phase: pausedAt(1) }, 50_000)).toEqual(endless);
    const timing = timingOf({ onTimeout: "pause" });
    expect(timingAfterResume({ timing, phase: ACTIVE }, 50_000)).toEqual(timing);
    expect(timingAfterResume({ timing, phase: pausedAt(10_500) }, 9000)).toEqual(timing);
  });
});

describe("extendTiming", () => {
  it("moves the end to a ttl from now, and takes it away", () => {
    const row = { timing: timingOf(), phase: ACTIVE };
    expect(extendTiming(row, 500, 20_000)).toEqual({
      timing: timingOf({ ttlMs: 500, expiresAtMs: 20_500 }),
      phase: ACTIVE,
    });
    expect(extendTiming(row, null, 20_000).timing).toMatchObject({ ttlMs: null, expiresAtMs: null });
  });

  it("keeps what a paused session is given until it is resumed, where a timeout pauses", () => {
    const row = { timing: timingOf({ onTimeout: "pause" }), phase: pausedAt(10_500, "timeout") };
    const extended = extendTiming(row, 500, 20_000);
    expect(extended.phase).toEqual(pausedAt(20_000, "timeout"));
    expect(timingAfterResume(extended, 90_000).expiresAtMs).toBe(90_500);
  });

  it("lets it run at once where a timeout destroys", () => {
    const row = { timing: timingOf(), phase: pausedAt(10_500) };
    expect(extendTiming(row, 500, 20_000).phase).toEqual(pausedAt(10_500));
  });
});

describe("dueAction", () => {
  const at = (more: Partial<Parameters<typeof dueAction>[1]> = {}) => ({
    nowMs: 11_000,
    idleMs: 0,
    sinceStartMs: 60_000,
    ...more,
  });

  it("is due at the end itself and not a millisecond before", () => {
    expect(dueAction({ timing: timingOf(), phase: ACTIVE }, at())).toBe("destroy");
    expect(dueAction({ timing: timingOf(), phase: ACTIVE }, at({ nowMs: 10_999 }))).toBeNull();
    expect(dueAction({ timing: timingOf({ onTimeout: "pause" }), phase: ACTIVE }, at())).toBe("pause");
  });

  it("is due when the idle time is reached", () => {
    const row = { timing: timingOf({ expiresAtMs: null, idleTimeoutMs: 300, onTimeout: "pause" }), phase: ACTIVE };
    expect(dueAction(row, at({ idleMs: 299 }))).toBeNull();
    expect(dueAction(row, at({ idleMs: 300 }))).toBe("pause");
  });

  it("waits for a minute after a start", () => {
    const row = { timing: timingOf({ idleTimeoutMs: 1 }), phase: ACTIVE };
    expect(dueAction(row, at({ idleMs: 1000, sinceStartMs: 59_999 }))).toBeNull();
    expect(dueAction(row, at({ idleMs: 1000, sinceStartMs: 60_000 }))).toBe("destroy");
  });

  it("never ends a paused session by its idle time, and by its ttl only where a timeout destroys", () => {
    const late = at({ nowMs: 1e12, idleMs: 1e12 });
    const idle = timingOf({ expiresAtMs: null, idleTimeoutMs: 1 });
    expect(dueAction({ timing: idle, phase: pausedAt(1) }, late)).toBeNull();
    expect(dueAction({ timing: timingOf({ onTimeout: "pause" }), phase: pausedAt(1) }, late)).toBeNull();
    expect(dueAction({ timing: timingOf(), phase: pausedAt(1) }, at())).toBe("destroy");
  });

  it("ends a failed session by its ttl where a timeout destroys, and leaves one alone that comes or goes", () => {
    const failed: Phase = { kind: "failed", message: "x" };
    const late = at({ nowMs: 1e12, idleMs: 1e12 });
    expect(
      dueAction({ timing: timingOf({ idleTimeoutMs: 1 }), phase: failed }, at({ nowMs: 1, idleMs: 9 })),
    ).toBeNull();
    expect(dueAction({ timing: timingOf(), phase: failed }, late)).toBe("destroy");
    expect(dueAction({ timing: timingOf({ onTimeout: "pause" }), phase: failed }, late)).toBeNull();
    for (const phase of [{ kind: "creating" }, { kind: "destroying", sinceMs: 1 }] satisfies Phase[])
      expect(dueAction({ timing: timingOf(), phase }, late)).toBeNull();
  });

  it("never ends what has no time", () => {
    const row = { timing: timingOf({ ttlMs: null, expiresAtMs: null }), phase: ACTIVE };
    expect(dueAction(row, at({ nowMs: 1e15, idleMs: 1e15 }))).toBeNull();
  });
});
