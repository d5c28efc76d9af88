import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { SIGNAL, startTestHost } from "../compose.suite.ts";
import { completeTurn, rollBack, rowsOf, storedNames, takeSnapshot, writeAndSeal } from "./turn.suite.ts";

const BROKEN = new SandboxError("STORAGE_UNAVAILABLE", "broken by the test");

describe("completeTurn", () => {
  it("numbers concurrent turns one after the other, each with its own snapshot (D7)", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const step = async (index: number) => {
      await test.bash(session, `write /workspace/f${index} x`);
      return await completeTurn(test, session);
    };
    const turns = await Promise.all(Array.from({ length: 8 }, (_, index) => step(index)));
    const sealed = turns.filter(({ unchanged }) => !unchanged);
    const numbers = sealed.map(({ turnNumber }) => turnNumber).sort((a, b) => a - b);
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    expect(new Set(sealed.map(({ snapshot }) => snapshot?.name)).size).toBe(sealed.length);
    // A call that found nothing new got a turn that another call sealed.
    expect(turns.every(({ turnNumber }) => numbers.includes(turnNumber))).toBe(true);
  });

  it("returns the same turn for the same key, also over a restart", async () => {
    const before = await startTestHost();
    const session = await before.create();
    const first = await completeTurn(before, session, "k");
    expect(await completeTurn(before, session, "k")).toEqual(first);
    await using after = await before.restart();
    const again = after.host.registry.find(session.row.id);
    expect(again && (await completeTurn(after, again, "k"))).toEqual(first);
  });

  it("leaves no snapshot, no number and no intent behind when the storage refuses", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    test.storage.faults.failNext("seal", { error: BROKEN });
    await expect(completeTurn(test, session)).rejects.toBe(BROKEN);
    expect(await storedNames(test, session)).toEqual([]);
    expect(await test.host.records.call("listIntents", null)).toEqual([]);
    expect((await completeTurn(test, session)).turnNumber).toBe(1);
  });

  it("returns the turn when the storage failed after doing its work", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    test.storage.faults.failNext("seal", { error: BROKEN, when: "after" });
    const first = await completeTurn(test, session, "k");
    expect(await storedNames(test, session)).toEqual([first.snapshot?.name]);
    expect(await completeTurn(test, session, "k")).toEqual(first);
    await test.bash(session, "write /workspace/a more");
    expect((await completeTurn(test, session)).turnNumber).toBe(2);
  });

  it("goes on after a failure that could not be settled at once", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    test.storage.faults.failNext("seal", { error: BROKEN });
    test.storage.faults.failNext("listSnapshots", { error: BROKEN });
    await expect(completeTurn(test, session)).rejects.toBe(BROKEN);
    expect((await completeTurn(test, session)).turnNumber).toBe(1);
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
    void completeTurn(before, session, "k");
    await sealed.promise;
    await using after = await before.restart();
    const again = after.host.registry.find(session.row.id);
    if (again === undefined) throw new Error("the session is gone");
    const { snapshot } = await completeTurn(after, again, "k");
    expect(await storedNames(after, session)).toEqual([snapshot?.name]);
    expect((await rowsOf(after, session)).map(({ turnKey }) => turnKey)).toEqual(["k"]);
    expect(again.row.turnCounter).toBe(1);
    expect(await after.host.records.call("listIntents", null)).toEqual([]);
  });
});

describe("a turn in which nothing was written", () => {
  it("returns the last turn, uses no number and leaves no snapshot", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const last = await writeAndSeal(test, session, "one");
    await test.bash(session, "cat /workspace/a");
    const turn = await completeTurn(test, session);
    expect(turn).toMatchObject({ unchanged: true, turnNumber: 1, snapshot: { id: last } });
    expect(await storedNames(test, session)).toHaveLength(1);
    expect(session.row.turnCounter).toBe(1);
  });

  it("is remembered by its key, also when something is written later", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await writeAndSeal(test, session, "one");
    const turn = await completeTurn(test, session, "k");
    await test.bash(session, "write /workspace/a two");
    expect(await completeTurn(test, session, "k")).toEqual(turn);
  });

  it("is a turn all the same if it is the first, or follows a snapshot that is none", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    expect(await completeTurn(test, session)).toMatchObject({ unchanged: false, turnNumber: 1 });
    await test.bash(session, "write /workspace/a one");
    await takeSnapshot(test, session, "before");
    expect(await completeTurn(test, session)).toMatchObject({ unchanged: false, turnNumber: 2 });
    expect((await rowsOf(test, session)).map(({ kind }) => kind)).toEqual(["turn", "named", "turn"]);
  });

  it("is not looked for if the service has written a file since, and is after that", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await writeAndSeal(test, session, "one");
    const call = { callId: "w", toolName: "write_file", parameters: { path: "b", content: "two" } } as const;
    await test.host.executeTool(session, {
      ...call,
      stdin: new Uint8Array(),
      expectedGeneration: undefined,
      kill: SIGNAL,
    });
    test.storage.faults.failNext("isUnchanged", { error: new Error("not asked") });
    expect(await completeTurn(test, session)).toMatchObject({ unchanged: false, turnNumber: 2 });
    // This one asks, fails, and so keeps its snapshot.
    expect(await completeTurn(test, session)).toMatchObject({ unchanged: false, turnNumber: 3 });
    expect(await completeTurn(test, session)).toMatchObject({ unchanged: true, turnNumber: 3 });
  });

  it("after a rollback to a turn is that turn", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const first = await writeAndSeal(test, session, "one");
    await writeAndSeal(test, session, "two");
    await rollBack(test, session, first);
    expect(await completeTurn(test, session)).toMatchObject({ unchanged: true, turnNumber: 1 });
    expect(await writeAndSeal(test, session, "three")).not.toBe(first);
    expect(session.row.turnCounter).toBe(3);
  });
});
