import { describe, expect, it } from "@jest/globals";
import type { Phase } from "../record/row.ts";
import { createRig } from "../session/rig.suite.ts";
import { createExtendSession, MAX_TTL_MS } from "./extend.ts";

const ask = (ttlMs: number | null, idempotencyKey = "", payload = "") => ({
  idempotencyKey,
  payload,
  expectedGeneration: undefined,
  ttlMs,
});

describe("extendSession", () => {
  it("moves the end, durably, and takes it away", async () => {
    await using rig = await createRig();
    const extend = createExtendSession(rig);
    const session = await rig.add();
    await extend(session, ask(5000));
    const expected = { ttlMs: 5000, expiresAtMs: rig.clock.nowMs() + 5000 };
    expect(session.row.timing).toMatchObject(expected);
    expect(await rig.records.call("listSessions", null)).toMatchObject([{ timing: expected }]);
    await extend(session, ask(null));
    expect(session.row.timing.expiresAtMs).toBeNull();
  });

  it("works on a paused and on a failed session, and keeps their phase", async () => {
    await using rig = await createRig();
    const extend = createExtendSession(rig);
    const sinceMs = rig.clock.nowMs();
    for (const phase of [
      { kind: "paused", sinceMs, cause: "timeout" },
      { kind: "failed", message: "x" },
    ] satisfies Phase[]) {
      const session = await rig.add({ phase });
      await extend(session, ask(5000));
      expect(session.row).toMatchObject({ phase, timing: { expiresAtMs: rig.clock.nowMs() + 5000 } });
    }
  });

  it("gives a held session its time from the resume on", async () => {
    await using rig = await createRig();
    const extend = createExtendSession(rig);
    const session = await rig.add({
      phase: { kind: "paused", sinceMs: 1, cause: "timeout" },
      timing: { ttlMs: 1, expiresAtMs: 2, idleTimeoutMs: null, onTimeout: "pause" },
    });
    await extend(session, ask(5000));
    expect(session.row.phase).toMatchObject({ sinceMs: rig.clock.nowMs() });
  });

  it("refuses a session that is being destroyed or made, and says so", async () => {
    await using rig = await createRig();
    const extend = createExtendSession(rig);
    const going = await rig.add({ phase: { kind: "destroying", sinceMs: 1 } });
    const coming = await rig.add({ phase: { kind: "creating" } });
    await expect(extend(going, ask(1))).rejects.toMatchObject({
      reason: "SESSION_DESTROYING",
      metadata: { state: "destroying", operation: "ExtendSession" },
    });
    await expect(extend(coming, ask(1))).rejects.toMatchObject({ reason: "INVALID_STATE" });
  });

  it("refuses a time that is none, or longer than a year, and an old generation", async () => {
    await using rig = await createRig();
    const extend = createExtendSession(rig);
    const session = await rig.add();
    for (const ttlMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, MAX_TTL_MS + 1])
      await expect(extend(session, ask(ttlMs))).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    await extend(session, ask(MAX_TTL_MS));
    await expect(extend(session, { ...ask(1), expectedGeneration: 7 })).rejects.toMatchObject({
      reason: "GENERATION_CHANGED",
    });
  });

  it("does a keyed request once", async () => {
    await using rig = await createRig();
    const extend = createExtendSession(rig);
    const session = await rig.add();
    await extend(session, ask(5000, "k", "p"));
    const { expiresAtMs } = session.row.timing;
    await rig.clock.advance(1000);
    await extend(session, ask(5000, "k", "p"));
    expect(session.row.timing.expiresAtMs).toBe(expiresAtMs);
    await expect(extend(session, ask(6000, "k", "q"))).rejects.toMatchObject({ reason: "IDEMPOTENCY_CONFLICT" });
  });
});
