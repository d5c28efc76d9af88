import { describe, expect, it } from "@jest/globals";
import { SIGNAL, startTestHost } from "../compose.suite.ts";
import { completeTurn, rollBack, rowsOf, storedNames, takeSnapshot, writeAndSeal } from "./turn.suite.ts";

describe("a turn in which nothing was written", () => {
  it("answers with the last turn, uses no number and leaves no snapshot", async () => {
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

  it("is a turn all the same where it is the first, or follows a snapshot that is none", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    expect(await completeTurn(test, session)).toMatchObject({ unchanged: false, turnNumber: 1 });
    await test.bash(session, "write /workspace/a one");
    await takeSnapshot(test, session, "before");
    expect(await completeTurn(test, session)).toMatchObject({ unchanged: false, turnNumber: 2 });
    expect((await rowsOf(test, session)).map(({ kind }) => kind)).toEqual(["turn", "named", "turn"]);
  });

  it("is not looked for where the service has written a file since, and is after that", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    await writeAndSeal(test, session, "one");
    const call = { callId: "w", toolName: "write_file", parameters: { path: "b", content: "two" } } as const;
    await test.host.executeTool(session, {
      ...call,
      stdin: new Uint8Array(),
      expectedGeneration: undefined,
      onProgress: null,
      kill: SIGNAL,
    });
    test.storage.faults.failNext("isUnchanged", { error: new Error("nobody asks") });
    expect(await completeTurn(test, session)).toMatchObject({ unchanged: false, turnNumber: 2 });
    // This one asks, meets the failure, and so keeps its snapshot.
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
