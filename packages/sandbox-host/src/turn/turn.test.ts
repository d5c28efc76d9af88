import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import type { Session } from "../session/session.ts";

const BROKEN = new SandboxError("STORAGE_UNAVAILABLE", "broken by the test");

const turn = (test: TestHost, session: Session, turnKey = "") =>
  test.host.completeTurn(session, { turnKey, outcome: "succeeded", expectedGeneration: undefined }, { signal: SIGNAL });
const rollback = (
  test: TestHost,
  session: Session,
  snapshotId: string,
  more: { key?: string; drainTimeoutMs?: number; generation?: number } = {},
) =>
  test.host.rollbackSession(
    session,
    {
      idempotencyKey: more.key ?? "",
      payload: snapshotId,
      snapshotId,
      expectedGeneration: more.generation,
      drainTimeoutMs: more.drainTimeoutMs ?? 0,
      processes: "stop",
    },
    { signal: SIGNAL },
  );
const snapshotsOf = (test: TestHost, session: Session) => test.host.records.call("listSnapshots", session.row.token);
const storedNames = async (test: TestHost, session: Session) =>
  (await test.storage.listSnapshots(session.row.token, { signal: SIGNAL })).map(({ name }) => name);

describe("completeTurn", () => {
  it("numbers concurrent turns one after the other, each with its own snapshot (D7)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const step = async (index: number) => {
      await test.bash(session, `write /workspace/f${index} x`);
      return await turn(test, session);
    };
    const turns = await Promise.all(Array.from({ length: 8 }, (_, index) => step(index)));
    const sealed = turns.filter(({ unchanged }) => !unchanged);
    const numbers = sealed.map(({ turnNumber }) => turnNumber).sort((a, b) => a - b);
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    expect(new Set(sealed.map(({ snapshot }) => snapshot?.name)).size).toBe(sealed.length);
    // Whoever found nothing new got a turn that somebody else sealed.
    expect(turns.every(({ turnNumber }) => numbers.includes(turnNumber))).toBe(true);
  });

  it("answers with the same turn for the same key, also over a restart", async () => {
    const before = await startTestHost();
    const session = await before.create();
    const first = await turn(before, session, "k");
    expect(await turn(before, session, "k")).toEqual(first);
    await using after = await before.restart();
    const again = after.host.registry.find(session.row.id);
    expect(again && (await turn(after, again, "k"))).toEqual(first);
  });

  it("leaves no snapshot, no number and no intent behind when the storage refuses", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    test.storage.faults.failNext("seal", { error: BROKEN });
    await expect(turn(test, session)).rejects.toBe(BROKEN);
    expect(await storedNames(test, session)).toEqual([]);
    expect(await test.host.records.call("listIntents", null)).toEqual([]);
    expect((await turn(test, session)).turnNumber).toBe(1);
  });

  it("answers with the turn when the storage failed after doing its work", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    test.storage.faults.failNext("seal", { error: BROKEN, when: "after" });
    const first = await turn(test, session, "k");
    expect(await storedNames(test, session)).toEqual([first.snapshot?.name]);
    expect(await turn(test, session, "k")).toEqual(first);
    await test.bash(session, "write /workspace/a more");
    expect((await turn(test, session)).turnNumber).toBe(2);
  });

  it("goes on after a failure that could not be settled at once", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    test.storage.faults.failNext("seal", { error: BROKEN });
    test.storage.faults.failNext("listSnapshots", { error: BROKEN });
    await expect(turn(test, session)).rejects.toBe(BROKEN);
    expect((await turn(test, session)).turnNumber).toBe(1);
    expect(await test.host.records.call("listIntents", null)).toEqual([]);
  });

  it("adopts a snapshot that exists when the service died before the answer, and the same key gets it", async () => {
    const sealed = Promise.withResolvers<undefined>();
    const before = await startTestHost(
      {},
      {
        crashPoint: async (point) => {
          if (point !== "seal.sealed") return;
          sealed.resolve(undefined);
          await new Promise(() => undefined);
        },
      },
    );
    const session = await before.create();
    void turn(before, session, "k");
    await sealed.promise;
    await using after = await before.restart();
    const again = after.host.registry.find(session.row.id);
    if (again === undefined) throw new Error("the session is gone");
    const { snapshot } = await turn(after, again, "k");
    expect(await storedNames(after, session)).toEqual([snapshot?.name]);
    expect((await snapshotsOf(after, session)).map(({ turnKey }) => turnKey)).toEqual(["k"]);
    expect(again.row.turnCounter).toBe(1);
    expect(await after.host.records.call("listIntents", null)).toEqual([]);
  });
});

describe("rollbackSession", () => {
  it("brings files back, raises the generation, keeps the old head for undo, and never reuses a number (D10)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await test.bash(session, "write /workspace/a one");
    const first = await turn(test, session);
    await test.bash(session, "write /workspace/a two");
    await turn(test, session);
    await test.bash(session, "write /workspace/a three");
    const { undoSnapshotId, generation } = await rollback(test, session, first.snapshot?.id ?? "");
    expect(generation).toBe(2);
    expect((await test.bash(session, "cat /workspace/a")).content).toBe("one");
    await test.bash(session, "write /workspace/b new");
    expect((await turn(test, session)).turnNumber).toBe(3);
    await rollback(test, session, undoSnapshotId);
    expect((await test.bash(session, "cat /workspace/a")).content).toBe("three");
    expect((await turn(test, session)).turnNumber).toBe(4);
  });

  it("gets the new sandbox ready for a command, and the old one for none any more", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await test.bash(session, "write /workspace/a one");
    const { snapshot } = await turn(test, session);
    const old = session.row.container;
    await rollback(test, session, snapshot?.id ?? "");
    expect(session.row.container).not.toBe(old);
    expect(test.runtime.anticipated).toEqual([session.row.container]);
    expect(test.runtime.unexpected).toEqual([old]);
  });

  it("draws a tree: the parent of a turn is the snapshot that its files continue from", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const seal = async (text: string) => {
      await test.bash(session, `write /workspace/a ${text}`);
      return (await turn(test, session)).snapshot;
    };
    const [first, second] = [await seal("one"), await seal("two")];
    const { undoSnapshotId } = await rollback(test, session, first?.id ?? "");
    const third = await seal("three");
    const parents = new Map((await snapshotsOf(test, session)).map(({ id, parent }) => [id, parent]));
    expect([second, third].map((row) => parents.get(row?.id ?? ""))).toEqual([first?.id, first?.id]);
    expect(parents.get(undoSnapshotId)).toBe(second?.id);
  });

  it("refuses an unknown snapshot and leaves the session as it was (D1)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await expect(rollback(test, session, "snap-nothing")).rejects.toMatchObject({ reason: "SNAPSHOT_NOT_FOUND" });
    expect(session.row).toMatchObject({ phase: { kind: "active" }, generation: 1 });
    expect((await test.bash(session, "echo usable")).content).toBe("usable\n");
  });

  it("refuses a stale generation with the present one", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const { snapshot } = await turn(test, session);
    await rollback(test, session, snapshot?.id ?? "", { generation: 1 });
    await expect(rollback(test, session, snapshot?.id ?? "", { generation: 1 })).rejects.toMatchObject({
      reason: "GENERATION_CHANGED",
      currentGeneration: 2,
    });
  });

  it("refuses while a tool runs, keeps new ones out while it waits, and goes on when they have ended", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const { snapshot } = await turn(test, session);
    const kill = new AbortController();
    const running = test.host.executeTool(session, {
      callId: "running",
      toolName: "bash",
      parameters: { cmd: "sleep" },
      stdin: new Uint8Array(),
      expectedGeneration: undefined,
      onProgress: null,
      kill: kill.signal,
    });
    while (session.gate.inFlight === 0) await new Promise((resolve) => void setImmediate(resolve));
    await expect(rollback(test, session, snapshot?.id ?? "")).rejects.toMatchObject({ reason: "TOOLS_IN_FLIGHT" });
    const waiting = rollback(test, session, snapshot?.id ?? "", { drainTimeoutMs: 10_000 });
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
    const { snapshot } = await turn(test, session);
    await test.bash(session, "write /workspace/a two");
    const { container } = session.row;
    for (const operation of ["seal", "createHead"] as const) {
      for (const when of ["before", "after"] as const) {
        test.storage.faults.failNext(operation, { error: BROKEN, when });
        await expect(rollback(test, session, snapshot?.id ?? "")).rejects.toBe(BROKEN);
        expect(session.row).toMatchObject({ generation: 1, headGeneration: 1, container });
        expect((await test.bash(session, "cat /workspace/a")).content).toBe("two");
        expect(await storedNames(test, session)).toEqual([snapshot?.name]);
        expect(await test.host.records.call("listIntents", null)).toEqual([]);
      }
    }
    expect((await rollback(test, session, snapshot?.id ?? "")).generation).toBe(2);
  });

  it("undoes what it makes beside the step that fails, when that has ended", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const { snapshot } = await turn(test, session);
    await test.bash(session, "write /workspace/a two");
    const { container } = session.row;
    const hold = test.storage.faults.holdNext("createHead");
    test.storage.faults.failNext("seal", { error: BROKEN });
    const rolling = rollback(test, session, snapshot?.id ?? "");
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
    const { snapshot } = await turn(before, session);
    await before.bash(session, "write /workspace/a two");
    // All is made, and the commit never comes.
    const commit = session.commit;
    const committing = Promise.withResolvers<undefined>();
    session.commit = () => {
      committing.resolve(undefined);
      return new Promise(() => undefined);
    };
    void rollback(before, session, snapshot?.id ?? "");
    await committing.promise;
    expect(await before.runtime.list({ signal: SIGNAL })).toHaveLength(2);
    session.commit = commit;
    await using after = await before.restart();
    const again = after.host.registry.find(session.row.id);
    expect(again?.row).toMatchObject({ generation: 1, headGeneration: 1 });
    expect(again && (await after.bash(again, "cat /workspace/a")).content).toBe("two");
    expect((await snapshotsOf(after, session)).map(({ kind }) => kind)).toEqual(["turn"]);
    expect(await after.runtime.list({ signal: SIGNAL })).toEqual([session.row.container]);
    expect(again && (await rollback(after, again, snapshot?.id ?? "")).generation).toBe(2);
  });

  it("waits for a boot that a killed call left behind, so that the new head is never written through the old one", async () => {
    const before = await startTestHost();
    const made = await before.create();
    const { snapshot } = await turn(before, made);
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
        onProgress: null,
        kill: kill.signal,
      })
      .catch(() => undefined);
    await hold.entered;
    kill.abort();
    await killed;
    const rolling = rollback(test, session, snapshot?.id ?? "");
    hold.release();
    await rolling;
    await test.bash(session, "write /workspace/after yes");
    const { path } = await test.storage.mountHead({ token: session.row.token, generation: 2 }, { signal: SIGNAL });
    expect(existsSync(join(path, "workspace/after"))).toBe(true);
  });
});
