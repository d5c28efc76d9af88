import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { SIGNAL, startTestHost } from "../compose.suite.ts";
import { completeTurn, rollBack, rowsOf, storedNames } from "./turn.suite.ts";

const BROKEN = new SandboxError("STORAGE_UNAVAILABLE", "broken by the test");

describe("rollbackSession", () => {
  it("brings files back, raises the generation, keeps the old head for undo, and never reuses a number (D10)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await test.bash(session, "write /workspace/a one");
    const first = await completeTurn(test, session);
    await test.bash(session, "write /workspace/a two");
    await completeTurn(test, session);
    await test.bash(session, "write /workspace/a three");
    const { undoSnapshotId, generation } = await rollBack(test, session, first.snapshot?.id ?? "");
    expect(generation).toBe(2);
    expect((await test.bash(session, "cat /workspace/a")).content).toBe("one");
    await test.bash(session, "write /workspace/b new");
    expect((await completeTurn(test, session)).turnNumber).toBe(3);
    await rollBack(test, session, undoSnapshotId);
    expect((await test.bash(session, "cat /workspace/a")).content).toBe("three");
    expect((await completeTurn(test, session)).turnNumber).toBe(4);
  });

  it("gets the new sandbox ready for a command, and the old one for none any more", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await test.bash(session, "write /workspace/a one");
    const { snapshot } = await completeTurn(test, session);
    const old = session.row.container;
    await rollBack(test, session, snapshot?.id ?? "");
    expect(session.row.container).not.toBe(old);
    expect(test.runtime.anticipated).toEqual([session.row.container]);
    expect(test.runtime.unexpected).toEqual([old]);
  });

  it("draws a tree: the parent of a turn is the snapshot that its files continue from", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const seal = async (text: string) => {
      await test.bash(session, `write /workspace/a ${text}`);
      return (await completeTurn(test, session)).snapshot;
    };
    const [first, second] = [await seal("one"), await seal("two")];
    const { undoSnapshotId } = await rollBack(test, session, first?.id ?? "");
    const third = await seal("three");
    const parents = new Map((await rowsOf(test, session)).map(({ id, parent }) => [id, parent]));
    expect([second, third].map((row) => parents.get(row?.id ?? ""))).toEqual([first?.id, first?.id]);
    expect(parents.get(undoSnapshotId)).toBe(second?.id);
  });

  it("refuses an unknown snapshot and leaves the session as it was (D1)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await expect(rollBack(test, session, "snap-nothing")).rejects.toMatchObject({ reason: "SNAPSHOT_NOT_FOUND" });
    expect(session.row).toMatchObject({ phase: { kind: "active" }, generation: 1 });
    expect((await test.bash(session, "echo usable")).content).toBe("usable\n");
  });

  it("refuses a stale generation with the present one", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const { snapshot } = await completeTurn(test, session);
    await rollBack(test, session, snapshot?.id ?? "", { generation: 1 });
    await expect(rollBack(test, session, snapshot?.id ?? "", { generation: 1 })).rejects.toMatchObject({
      reason: "GENERATION_CHANGED",
      currentGeneration: 2,
    });
  });

  it("refuses while a tool runs, keeps new ones out while it waits, and goes on when they have ended", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const { snapshot } = await completeTurn(test, session);
    const kill = new AbortController();
    const running = test.host.executeTool(session, {
      callId: "running",
      toolName: "bash",
      parameters: { cmd: "sleep" },
      stdin: new Uint8Array(),
      expectedGeneration: undefined,
      kill: kill.signal,
    });
    while (session.gate.inFlight === 0) await new Promise((resolve) => void setImmediate(resolve));
    await expect(rollBack(test, session, snapshot?.id ?? "")).rejects.toMatchObject({ reason: "TOOLS_IN_FLIGHT" });
    const waiting = rollBack(test, session, snapshot?.id ?? "", { drainTimeoutMs: 10_000 });
    let refused: unknown;
    while (refused === undefined) await test.bash(session, "echo x").catch((thrown: unknown) => (refused = thrown));
    expect(refused).toMatchObject({ reason: "ROLLBACK_IN_PROGRESS" });
    kill.abort();
    await running;
    expect((await waiting).generation).toBe(2);
  });

  it("leaves the session on the old head, with its container thawed, whichever step fails", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await test.bash(session, "write /workspace/a one");
    const { snapshot } = await completeTurn(test, session);
    await test.bash(session, "write /workspace/a two");
    const { container } = session.row;
    for (const operation of ["seal", "createHead"] as const) {
      for (const when of ["before", "after"] as const) {
        test.storage.faults.failNext(operation, { error: BROKEN, when });
        await expect(rollBack(test, session, snapshot?.id ?? "")).rejects.toBe(BROKEN);
        expect(session.row).toMatchObject({ generation: 1, headGeneration: 1, container });
        expect((await test.bash(session, "cat /workspace/a")).content).toBe("two");
        expect(await storedNames(test, session)).toEqual([snapshot?.name]);
        expect(await test.host.records.call("listIntents", null)).toEqual([]);
      }
    }
    expect((await rollBack(test, session, snapshot?.id ?? "")).generation).toBe(2);
  });

  it("undoes what it makes beside the step that fails, when that has ended", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const { snapshot } = await completeTurn(test, session);
    await test.bash(session, "write /workspace/a two");
    const { container } = session.row;
    const hold = test.storage.faults.holdNext("createHead");
    test.storage.faults.failNext("seal", { error: BROKEN });
    const rolling = rollBack(test, session, snapshot?.id ?? "");
    rolling.catch(() => undefined);
    await hold.entered;
    hold.release();
    await expect(rolling).rejects.toBe(BROKEN);
    expect(await test.runtime.list({ signal: SIGNAL })).toEqual([container]);
    expect((await test.storage.presence({ signal: SIGNAL }))[0]?.heads).toHaveLength(1);
    expect((await test.bash(session, "cat /workspace/a")).content).toBe("two");
  });

  it("is undone at the next start when the service died before the commit, with the container that was booted", async () => {
    const before = await startTestHost();
    const session = await before.create();
    await before.bash(session, "write /workspace/a one");
    const { snapshot } = await completeTurn(before, session);
    await before.bash(session, "write /workspace/a two");
    // All is made, and the commit never comes.
    const commit = session.commit;
    const committing = Promise.withResolvers<undefined>();
    session.commit = () => {
      committing.resolve(undefined);
      return new Promise(() => undefined);
    };
    void rollBack(before, session, snapshot?.id ?? "");
    await committing.promise;
    expect(await before.runtime.list({ signal: SIGNAL })).toHaveLength(2);
    session.commit = commit;
    await using after = await before.restart();
    const again = after.host.registry.find(session.row.id);
    expect(again?.row).toMatchObject({ generation: 1, headGeneration: 1 });
    expect(again && (await after.bash(again, "cat /workspace/a")).content).toBe("two");
    expect((await rowsOf(after, session)).map(({ kind }) => kind)).toEqual(["turn"]);
    expect(await after.runtime.list({ signal: SIGNAL })).toEqual([session.row.container]);
    expect(again && (await rollBack(after, again, snapshot?.id ?? "")).generation).toBe(2);
  });

  it("waits for a boot that a killed call left behind, so that the new head is never written through the old one", async () => {
    const before = await startTestHost();
    const made = await before.create();
    const { snapshot } = await completeTurn(before, made);
    // The files of a session that was just made are known to be there.
    await using test = await before.restart();
    const session = test.host.registry.find(made.row.id);
    if (session === undefined) throw new Error("the session is gone");
    const hold = test.storage.faults.holdNext("mountHead");
    const kill = new AbortController();
    const killed = test.host
      .executeTool(session, {
        callId: "killed",
        toolName: "bash",
        parameters: { cmd: "echo x" },
        stdin: new Uint8Array(),
        expectedGeneration: undefined,
        kill: kill.signal,
      })
      .catch(() => undefined);
    await hold.entered;
    kill.abort();
    await killed;
    const rolling = rollBack(test, session, snapshot?.id ?? "");
    hold.release();
    await rolling;
    await test.bash(session, "write /workspace/after yes");
    const { path } = await test.storage.mountHead({ token: session.row.token, generation: 2 }, { signal: SIGNAL });
    expect(existsSync(join(path, "workspace/after"))).toBe(true);
  });
});
