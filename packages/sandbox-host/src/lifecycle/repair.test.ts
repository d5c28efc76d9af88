import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import type { IntentRow, Phase } from "../record/row.ts";
import type { SettleIntent } from "../session/intent.ts";
import { CALL, createRig, type Rig, snapshotOf } from "../session/rig.suite.ts";
import type { Session } from "../session/session.ts";
import { createRepairSession } from "./repair.ts";

const FAILED: Phase = { kind: "failed", message: "broken by the test" };
const ask = (idempotencyKey = "") => ({ idempotencyKey, payload: "p" });
const never: SettleIntent = () => Promise.reject(new Error("there is nothing to settle"));
const repairIn = (rig: Rig, settle: SettleIntent = never) => createRepairSession({ ...rig, settle });
const fail = (session: Session) => session.commit((row) => ({ ...row, phase: FAILED }));

async function write(rig: Rig, session: Session, text: string): Promise<void> {
  const { path } = await rig.storage.mountHead(session.head, CALL);
  await writeFile(join(path, "a.txt"), text);
}
async function read(rig: Rig, session: Session): Promise<string> {
  const { path } = await rig.storage.mountHead(session.head, CALL);
  return await readFile(join(path, "a.txt"), "utf8");
}

describe("repairSession", () => {
  it("leaves active and paused sessions as they are, and refuses those that come and go", async () => {
    await using rig = await createRig();
    const repair = repairIn(rig);
    const paused: Phase = { kind: "paused", sinceMs: 1, cause: "request" };
    for (const phase of [{ kind: "active" }, paused] satisfies Phase[]) {
      const session = await rig.add({ phase });
      expect(await repair(session, ask(), CALL)).toEqual({ actions: [] });
      expect(session.row).toMatchObject({ phase, generation: 1 });
    }
    const going = await rig.add({ phase: { kind: "destroying", sinceMs: 1 } });
    await expect(repair(going, ask(), CALL)).rejects.toMatchObject({ reason: "SESSION_DESTROYING" });
    const coming = await rig.add({ phase: { kind: "creating" } });
    await expect(repair(coming, ask(), CALL)).rejects.toMatchObject({
      reason: "INVALID_STATE",
      metadata: { state: "creating", operation: "RepairSession" },
    });
  });

  it("brings a session with whole files back under a new generation, without its container", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    await write(rig, session, "kept");
    const container = await rig.containers.ensure(session, CALL);
    await fail(session);
    await rig.storage.unmountHead(session.head, CALL);
    expect(await repairIn(rig)(session, ask(), CALL)).toEqual({
      actions: ["ended its container", "mounted its files", "raised the generation to 2"],
    });
    expect(session.row).toMatchObject({ phase: { kind: "active" }, generation: 2, headGeneration: 1, container: null });
    expect(await rig.runtime.list(CALL)).toEqual([]);
    expect(await read(rig, session)).toBe("kept");
    expect(await rig.containers.ensure(session, CALL)).not.toBe(container);
    expect(session.row.generation).toBe(2);
  });

  it("makes lost files again from the snapshot that they continued from", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    await write(rig, session, "one");
    await rig.seal(session, "x1");
    await write(rig, session, "two");
    await rig.seal(session, "x2");
    await session.commit((row) => ({ ...row, generation: 2, headGeneration: 2, parentSnapshot: "x1", phase: FAILED }));
    const { actions } = await repairIn(rig)(session, ask(), CALL);
    expect(actions).toContain("made its files again from snapshot x1");
    expect(session.row).toMatchObject({ phase: { kind: "active" }, generation: 3, headGeneration: 3 });
    expect(await read(rig, session)).toBe("one");
  });

  it("takes the newest snapshot where that one is gone, too", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    for (const id of ["x1", "x2"]) {
      await write(rig, session, id);
      await rig.seal(session, id);
    }
    await session.commit((row) => ({
      ...row,
      generation: 2,
      headGeneration: 2,
      parentSnapshot: "gone",
      phase: FAILED,
    }));
    await repairIn(rig)(session, ask(), CALL);
    expect(session.row.parentSnapshot).toBe("x2");
    expect(await read(rig, session)).toBe("x2");
  });

  it("says what is missing and what remains where nothing can be made again", async () => {
    await using rig = await createRig();
    const lost = await rig.add({ phase: FAILED });
    await rig.storage.destroySession(lost.row.token, CALL);
    await expect(repairIn(rig)(lost, ask(), CALL)).rejects.toMatchObject({
      reason: "INVALID_STATE",
      message: expect.stringMatching(/nothing of its files .* DestroySession remains/) as unknown,
    });
    const headless = await rig.add({ phase: FAILED, headGeneration: 2 });
    await expect(repairIn(rig)(headless, ask(), CALL)).rejects.toMatchObject({
      message: expect.stringMatching(/no snapshot to make them from; DestroySession remains/) as unknown,
    });
    expect([lost.row.phase.kind, headless.row.phase.kind]).toEqual(["failed", "failed"]);
  });

  it("ends what was cut off first, and can be asked again where that fails", async () => {
    await using rig = await createRig();
    const session = await rig.add({ phase: FAILED });
    const intent: IntentRow = {
      kind: "seal",
      token: session.row.token,
      snapshot: snapshotOf("x1", session.row),
      receipt: null,
    };
    await rig.records.call("beginIntent", intent);
    session.leftover = intent;
    const broken = new SandboxError("STORAGE_UNAVAILABLE", "broken by the test");
    await expect(repairIn(rig, () => Promise.reject(broken))(session, ask(), CALL)).rejects.toBe(broken);
    expect(session.row.phase).toEqual(FAILED);
    const settled: IntentRow[] = [];
    const { actions } = await repairIn(rig, async (_, cutOff) => {
      settled.push(cutOff);
      await rig.records.call("endIntent", cutOff.token);
    })(session, ask(), CALL);
    expect(settled).toEqual([intent]);
    expect(actions[0]).toBe("brought a seal to its end that was cut off");
    expect(session).toMatchObject({ leftover: null, row: { phase: { kind: "active" } } });
  });

  it("goes on where it failed halfway, and does a keyed request once", async () => {
    await using rig = await createRig();
    const session = await rig.add();
    await rig.seal(session, "x1");
    await session.commit((row) => ({ ...row, generation: 2, headGeneration: 2, phase: FAILED }));
    const repair = repairIn(rig);
    const broken = new SandboxError("STORAGE_UNAVAILABLE", "broken by the test");
    rig.storage.faults.failNext("mountHead", { error: broken });
    await expect(repair(session, ask("k"), CALL)).rejects.toBe(broken);
    const first = await repair(session, ask("k"), CALL);
    expect(session.row).toMatchObject({ phase: { kind: "active" }, generation: 3, headGeneration: 3 });
    expect(await repair(session, ask("k"), CALL)).toEqual(first);
    expect(session.row.generation).toBe(3);
  });
});
