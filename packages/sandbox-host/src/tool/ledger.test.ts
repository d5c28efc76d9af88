import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import type { Session } from "../session/session.ts";
import { completeTurn, forkInto, rollBack, takeSnapshot, writeAndSeal } from "../turn/turn.suite.ts";
import type { ToolCall } from "./execute.ts";

const execute = (test: TestHost, session: Session, callId: string, more: Partial<ToolCall> = {}) =>
  test.host.executeTool(session, {
    callId,
    toolName: "bash",
    parameters: { cmd: `append /workspace/log ${callId}` },
    stdin: new Uint8Array(),
    expectedGeneration: undefined,
    kill: SIGNAL,
    ...more,
  });

/** How the same call is answered again: from where its result comes, or why there is none. */
const again = (test: TestHost, session: Session, callId: string, more: Partial<ToolCall> = {}): Promise<string> =>
  execute(test, session, callId, more).then(
    ({ from }) => from,
    (thrown: unknown) => SandboxError.from(thrown).reason,
  );

const log = async (test: TestHost, session: Session): Promise<string> =>
  (await test.bash(session, "cat /workspace/log")).content.trim().replaceAll("\n", " ");

function found(test: TestHost, session: Session): Session {
  const seen = test.host.registry.find(session.row.id);
  if (seen === undefined) throw new Error("the session is gone");
  return seen;
}

async function sealed(test: TestHost, session: Session): Promise<string> {
  const { snapshot } = await completeTurn(test, session);
  if (snapshot === null) throw new Error("the turn has no snapshot");
  return snapshot.id;
}

describe("a call that a rollback discarded", () => {
  it("is refused with CALL_ROLLED_BACK and its result, and undo makes it valid again", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await execute(test, session, "early");
    const snapshot = await sealed(test, session);
    await execute(test, session, "late", { parameters: { cmd: "print out err 3" } });
    const { undoSnapshotId } = await rollBack(test, session, snapshot);
    expect(await again(test, session, "early")).toBe("store");
    const refused = execute(test, session, "late", { parameters: { cmd: "print out err 3" } });
    await expect(refused).rejects.toMatchObject({
      reason: "CALL_ROLLED_BACK",
      admitted: "yes",
      remedy: expect.stringContaining("new call id"),
      metadata: { toolCallId: "late", content: "out\nerr", exitCode: "3", isError: "true", exitReason: "exited" },
    });
    await rollBack(test, session, undoSnapshotId);
    expect(await again(test, session, "late", { parameters: { cmd: "print out err 3" } })).toBe("store");
    expect(await again(test, session, "early")).toBe("store");
  });

  it("stays so over a restart and over the end of the snapshots that show it", async () => {
    const before = await startTestHost({ maxSnapshotsPerSession: 2 });
    const session = await before.create();
    const snapshot = await writeAndSeal(before, session, "one");
    await execute(before, session, "lost");
    await rollBack(before, session, snapshot);
    await execute(before, session, "kept");
    for (const text of ["two", "three", "four"]) await writeAndSeal(before, session, text);
    await session.serial.idle();
    await using after = await before.restart();
    expect(await again(after, found(after, session), "lost")).toBe("CALL_ROLLED_BACK");
    expect(await again(after, found(after, session), "kept")).toBe("store");
  });

  it("is found if a rollback goes back to one of several heads", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await execute(test, session, "a");
    const first = await sealed(test, session);
    await execute(test, session, "b");
    const second = await sealed(test, session);
    await rollBack(test, session, first);
    await execute(test, session, "c");
    const third = await sealed(test, session);
    const answers = async () => await Promise.all(["a", "b", "c"].map((callId) => again(test, session, callId)));
    expect(await answers()).toEqual(["store", "CALL_ROLLED_BACK", "store"]);
    await rollBack(test, session, second);
    expect(await answers()).toEqual(["store", "store", "CALL_ROLLED_BACK"]);
    await rollBack(test, session, third);
    expect(await answers()).toEqual(["store", "CALL_ROLLED_BACK", "store"]);
    expect(await log(test, session)).toBe("a c");
  });

  it("is in the snapshot that was taken for it", async () => {
    await using test = await startTestHost({ perToolSnapshots: true });
    const session = await test.create();
    const { result } = await execute(test, session, "a");
    await execute(test, session, "b");
    await rollBack(test, session, result.snapshotId ?? "");
    expect(await again(test, session, "a")).toBe("store");
    expect(await again(test, session, "b")).toBe("CALL_ROLLED_BACK");
    expect(await log(test, session)).toBe("a");
  });

  it("is unknown if it was under way while the snapshot was taken", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const running = execute(test, session, "across", { parameters: { cmd: "append /workspace/log x hang" } });
    while ((await log(test, session).catch(() => "")) !== "x")
      await new Promise((resolve) => void setImmediate(resolve));
    const snapshot = await takeSnapshot(test, session, "in the middle");
    expect(await test.host.toolCalls.cancel(session, "across", { signal: SIGNAL })).toBe(true);
    await running;
    await rollBack(test, session, snapshot.id);
    const same = { parameters: { cmd: "append /workspace/log x hang" } };
    expect(await again(test, session, "across", same)).toBe("OUTCOME_UNKNOWN");
  });
});

describe("a fork", () => {
  it("knows no calls of its parent", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await execute(test, session, "a");
    const [child] = await forkInto(test, session);
    if (child === undefined) throw new Error("there is no child");
    await expect(test.host.toolCalls.attach(child, "a", () => undefined)).rejects.toMatchObject({
      reason: "TOOL_CALL_NOT_FOUND",
    });
    expect(await again(test, child, "a")).toBe("run");
    expect(await log(test, child)).toBe("a a");
    expect(await log(test, session)).toBe("a");
  });
});

describe("files that may be lost", () => {
  it("make calls since the last snapshot unknown after a reboot, under a new generation, and no others", async () => {
    const before = await startTestHost({}, { bootId: "one" });
    const session = await before.create();
    const paused = await before.create();
    await execute(before, session, "sealed");
    await sealed(before, session);
    await execute(before, session, "late");
    const same = await before.restart({ bootId: "one" });
    expect(await again(same, found(same, session), "late")).toBe("store");
    expect(found(same, session).row.generation).toBe(1);
    await using after = await same.restart({ bootId: "two" });
    const lost = found(after, session);
    expect([lost.row.generation, found(after, paused).row.generation]).toEqual([2, 2]);
    expect(await again(after, lost, "sealed")).toBe("store");
    await expect(execute(after, lost, "late")).rejects.toMatchObject({
      reason: "OUTCOME_UNKNOWN",
      message: expect.stringContaining("DiffSnapshots"),
      metadata: { cause: "files_lost" },
    });
    expect(await again(after, lost, "new")).toBe("run");
    expect(await again(after, lost, "new")).toBe("store");
  });

  it("make calls since the last snapshot unknown if the storage died, also without a container", async () => {
    const before = await startTestHost();
    const session = await before.create();
    await execute(before, session, "sealed");
    const snapshot = await sealed(before, session);
    await execute(before, session, "late");
    const { undoSnapshotId } = await rollBack(before, session, snapshot);
    await execute(before, session, "later");
    before.storage.loseMounts([session.head]);
    await using after = await before.restart();
    const lost = found(after, session);
    expect(lost.row.generation).toBe(3);
    expect(await again(after, lost, "sealed")).toBe("store");
    expect(await again(after, lost, "later")).toBe("OUTCOME_UNKNOWN");
    expect(await again(after, lost, "late")).toBe("CALL_ROLLED_BACK");
    await rollBack(after, lost, undoSnapshotId);
    expect(await again(after, lost, "late")).toBe("store");
    expect(await again(after, lost, "later")).toBe("CALL_ROLLED_BACK");
  });

  it("make calls unknown also if the storage dies under a host that goes on", async () => {
    await using test = await startTestHost({ healthCheckInterval: 10 });
    const session = await test.create();
    await execute(test, session, "late");
    test.storage.loseMounts([session.head]);
    while (session.row.generation === 1) await new Promise((resolve) => void setImmediate(resolve));
    expect(await again(test, session, "late")).toBe("OUTCOME_UNKNOWN");
    expect(await again(test, session, "new")).toBe("run");
    expect(session.row.generation).toBe(2);
  });

  it("are remembered if the service dies between the healing and the new generation", async () => {
    const before = await startTestHost();
    const session = await before.create();
    await execute(before, session, "late");
    before.storage.loseMounts([session.head]);
    // What a start does up to the crash: the storage is healed and does not tell again.
    const healing = before.storage.restarted();
    await healing.open({ signal: SIGNAL, onRemounted: (heads) => before.host.records.call("noteLostHeads", heads) });
    expect(await healing.open({ signal: SIGNAL })).toEqual({ remounted: [] });
    await using after = await before.restart();
    expect(found(after, session).row.generation).toBe(2);
    expect(await again(after, found(after, session), "late")).toBe("OUTCOME_UNKNOWN");
    expect(await after.host.records.call("listLostHeads", null)).toEqual([]);
  });

  it("are reported again if they could not be recorded", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    test.storage.loseMounts([session.head]);
    const healing = test.storage.restarted();
    const onRemounted = () => Promise.reject(new Error("no room"));
    await expect(healing.open({ signal: SIGNAL, onRemounted })).rejects.toThrow("no room");
    expect((await healing.open({ signal: SIGNAL })).remounted).toEqual([session.head]);
  });

  it("make a call unknown that was under way", async () => {
    const before = await startTestHost({}, { bootId: "one" });
    const session = await before.create();
    const same = { parameters: { cmd: "append /workspace/log x hang" } };
    const cut = execute(before, session, "cut", same).catch(() => undefined);
    while ((await log(before, session).catch(() => "")) !== "x") await new Promise((r) => void setImmediate(r));
    await using after = await before.restart({ bootId: "two" });
    await cut;
    await expect(execute(after, found(after, session), "cut", same)).rejects.toMatchObject({
      reason: "OUTCOME_UNKNOWN",
      metadata: { cause: "not_recorded" },
    });
    expect(await log(after, found(after, session))).toBe("x");
  });
});

describe("refusals", () => {
  it("of a paused, a draining and a rolling-back session are never stored (D22)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    for (const reason of ["ROLLBACK_IN_PROGRESS", "SESSION_PAUSED"] as const) {
      using _closed = session.gate.close(reason);
      expect(await again(test, session, "a")).toBe(reason);
    }
    const pause = { expectedGeneration: undefined, late: "refuse", drainTimeoutMs: 0, cause: "request" } as const;
    await test.host.pauseSession(session, pause, { signal: SIGNAL });
    expect(await again(test, session, "a")).toBe("SESSION_PAUSED");
    await test.host.resumeSession(session, { expectedGeneration: undefined }, { signal: SIGNAL });
    expect(await again(test, session, "a")).toBe("run");
    expect(await log(test, session)).toBe("a");
  });

  it("of a storage that does not serve leave no trace: nothing ran", async () => {
    const before = await startTestHost();
    const made = await before.create();
    // The files of a session that was just made are known to be there.
    await using test = await before.restart();
    const session = found(test, made);
    test.storage.faults.failNext("mountHead", { error: new SandboxError("STORAGE_UNAVAILABLE", "down") });
    expect(await again(test, session, "a")).toBe("STORAGE_UNAVAILABLE");
    expect(await again(test, session, "a")).toBe("run");
  });
});

describe("the retention of calls", () => {
  it("keeps the newest of each session, and those not older than it says", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const other = await test.create();
    for (const callId of ["a", "b", "c"]) await execute(test, session, callId);
    await execute(test, other, "a");
    await test.host.records.call("forgetCalls", { beforeMs: 0, keepPerSession: 2 });
    expect(await again(test, session, "b")).toBe("store");
    expect(await again(test, session, "c")).toBe("store");
    expect(await again(test, other, "a")).toBe("store");
    expect(await again(test, session, "a")).toBe("run");
    await test.host.records.call("forgetCalls", { beforeMs: Date.now() + 1000, keepPerSession: 2 });
    expect(await again(test, other, "a")).toBe("run");
  });
});
