import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import type { Timing } from "../record/row.ts";
import { createActivity } from "../session/activity.ts";
import { CALL, createRig, type Rig } from "../session/rig.suite.ts";
import type { DestroySession } from "./destroy.ts";
import { Expiry } from "./expire.ts";
import { createExtendSession } from "./extend.ts";
import type { PauseRequest, PauseSession } from "./pause.ts";

const MINUTE_MS = 60_000;
const timing = (more: Partial<Timing>): { readonly timing: Timing } => ({
  timing: { ttlMs: null, expiresAtMs: null, idleTimeoutMs: null, onTimeout: "destroy", ...more },
});

interface Deeds {
  readonly expiry: Expiry;
  readonly paused: { readonly id: string; readonly request: PauseRequest }[];
  readonly destroyed: string[];
}

/** An expiry whose pauses and destroys do what a test says, by default just change the phase. */
function watchTime(
  rig: Rig,
  {
    pauseSession,
    destroySession,
  }: { readonly pauseSession?: PauseSession; readonly destroySession?: DestroySession } = {},
): Deeds {
  const paused: Deeds["paused"] = [];
  const destroyed: string[] = [];
  const expiry = new Expiry({
    ...rig,
    drainTimeoutMs: 123,
    pauseSession: async (session, request, call) => {
      paused.push({ id: session.row.id, request });
      if (pauseSession !== undefined) await pauseSession(session, request, call);
      const sinceMs = rig.clock.nowMs();
      await session.commit((row) => ({ ...row, phase: { kind: "paused", sinceMs, cause: request.cause } }));
    },
    destroySession: async (session) => {
      destroyed.push(session.row.id);
      if (destroySession !== undefined) await destroySession(session);
      await session.commit((row) => ({ ...row, phase: { kind: "destroying", sinceMs: rig.clock.nowMs() } }));
    },
  });
  return { expiry, paused, destroyed };
}

async function sweep({ expiry }: Deeds): Promise<void> {
  await expiry.sweep(CALL);
  await expiry.settled();
}

describe("Expiry", () => {
  it("destroys and pauses what is due, and nothing else", async () => {
    await using rig = await createRig();
    const deeds = watchTime(rig);
    const endMs = rig.clock.nowMs() + 2 * MINUTE_MS;
    await rig.add({ id: "ends", ...timing({ expiresAtMs: endMs }) });
    await rig.add({ id: "pauses", ...timing({ expiresAtMs: endMs, onTimeout: "pause" }) });
    await rig.add({ id: "stays" });
    await rig.clock.advance(2 * MINUTE_MS - 1);
    await sweep(deeds);
    expect(deeds).toMatchObject({ paused: [], destroyed: [] });
    await rig.clock.advance(1);
    await sweep(deeds);
    await sweep(deeds);
    expect(deeds.destroyed).toEqual(["ends"]);
    expect(deeds.paused).toEqual([
      {
        id: "pauses",
        request: { expectedGeneration: undefined, late: "kill", drainTimeoutMs: 123, cause: "timeout" },
      },
    ]);
  });

  it("counts time of tools in flight as use, and time after a touch from there", async () => {
    await using rig = await createRig();
    const deeds = watchTime(rig);
    const session = await rig.add(timing({ idleTimeoutMs: 1000 }));
    await rig.clock.advance(MINUTE_MS);
    {
      using _tool = session.gate.enter();
      await sweep(deeds);
    }
    rig.activity.touch(session);
    await rig.clock.advance(999);
    await sweep(deeds);
    expect(deeds.destroyed).toEqual([]);
    await rig.clock.advance(1);
    await sweep(deeds);
    expect(deeds.destroyed).toEqual([session.row.id]);
  });

  it("does not count paused time as idle after the session goes on", async () => {
    await using rig = await createRig();
    const deeds = watchTime(rig);
    const session = await rig.add(timing({ idleTimeoutMs: MINUTE_MS, onTimeout: "pause" }));
    await rig.clock.advance(MINUTE_MS);
    await sweep(deeds);
    expect(session.row.phase.kind).toBe("paused");
    await rig.clock.advance(10 * MINUTE_MS);
    await sweep(deeds);
    await session.commit((row) => ({ ...row, phase: { kind: "active" } }));
    await sweep(deeds);
    expect(session.row.phase.kind).toBe("active");
  });

  it("never does two things at once with a session, and holds up no other", async () => {
    await using rig = await createRig();
    const hold = Promise.withResolvers<void>();
    const deeds = watchTime(rig, { pauseSession: () => hold.promise });
    const over = { expiresAtMs: rig.clock.nowMs() };
    const slow = await rig.add(timing({ ...over, onTimeout: "pause" }));
    await rig.clock.advance(MINUTE_MS);
    await deeds.expiry.sweep(CALL);
    const late = await rig.add(timing(over));
    await deeds.expiry.sweep(CALL);
    await deeds.expiry.sweep(CALL);
    hold.resolve();
    await deeds.expiry.settled();
    expect(deeds.paused.map(({ id }) => id)).toEqual([slow.row.id]);
    expect(deeds.destroyed).toEqual([late.row.id]);
  });

  it("tries a refused pause again at the next sweep", async () => {
    await using rig = await createRig();
    let refusals = 1;
    const deeds = watchTime(rig, {
      pauseSession: () => {
        refusals -= 1;
        return refusals < 0 ? Promise.resolve() : Promise.reject(new SandboxError("TOOLS_IN_FLIGHT", "still running"));
      },
    });
    const session = await rig.add(timing({ expiresAtMs: rig.clock.nowMs(), onTimeout: "pause" }));
    await rig.clock.advance(MINUTE_MS);
    await sweep(deeds);
    expect(session.row.phase.kind).toBe("active");
    await sweep(deeds);
    expect(session.row.phase).toMatchObject({ kind: "paused", cause: "timeout" });
  });

  it("lets a session live that was extended before its turn came", async () => {
    await using rig = await createRig();
    const deeds = watchTime(rig);
    const extend = createExtendSession(rig);
    const session = await rig.add(timing({ expiresAtMs: rig.clock.nowMs() }));
    await rig.clock.advance(MINUTE_MS);
    const busy = Promise.withResolvers<void>();
    const before = session.serial.run(() => busy.promise);
    const request = { idempotencyKey: "", payload: "", expectedGeneration: undefined, ttlMs: 1000 };
    const extending = extend(session, request);
    await deeds.expiry.sweep(CALL);
    busy.resolve();
    await Promise.all([before, extending, deeds.expiry.settled()]);
    expect(deeds.destroyed).toEqual([]);
  });

  it("remembers over a restart how long sessions were idle, and not the time in between", async () => {
    await using rig = await createRig();
    const session = await rig.add(timing({ idleTimeoutMs: 5 * MINUTE_MS }));
    const untimed = await rig.add();
    const before = watchTime(rig);
    await rig.clock.advance(2 * MINUTE_MS);
    await sweep(before);
    expect(await rig.records.call("listIdle", null)).toEqual({ [session.row.token]: 2 * MINUTE_MS });
    expect(untimed.row.timing.idleTimeoutMs).toBeNull();

    await rig.clock.advance(60 * MINUTE_MS);
    const activity = createActivity(rig);
    const after = watchTime({ ...rig, activity });
    await after.expiry.load();
    expect(activity.idleMs(session)).toBe(2 * MINUTE_MS);
    await rig.clock.advance(3 * MINUTE_MS - 1);
    await sweep(after);
    expect(after.destroyed).toEqual([]);
    await rig.clock.advance(1);
    await sweep(after);
    expect(after.destroyed).toEqual([session.row.id]);
  });

  it("ends nothing in the first minute, whatever has expired while the service was down", async () => {
    await using rig = await createRig();
    await rig.add(timing({ expiresAtMs: 1 }));
    const deeds = watchTime(rig);
    await rig.clock.advance(MINUTE_MS - 1);
    await sweep(deeds);
    expect(deeds.destroyed).toEqual([]);
    await rig.clock.advance(1);
    await sweep(deeds);
    expect(deeds.destroyed).toHaveLength(1);
  });
});
