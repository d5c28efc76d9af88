import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/client/fake";
import { toolCallIdOf } from "./mcp-server.ts";
import { textOf } from "./mcp-client.suite.ts";
import { ExitReason, MADE, newMcpWorld } from "@turnbox/client/fake";
import { createSpec, openMcp, PRESENT } from "./mcp-fixture.suite.ts";
import { createWorkspace } from "./workspace.ts";

describe("the tools that are offered", () => {
  it("are the sandbox's with their schemas as they are, and those of turns and forks", async () => {
    await using mcp = await openMcp();
    const { tools } = await mcp.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      "read_file",
      "bash",
      "turn",
      "turns",
      "rollback",
      "undo",
      "diff",
      "fork",
      "use_sandbox",
      "discard_fork",
      "sandbox_info",
    ]);
    const bash = tools.find(({ name }) => name === "bash");
    expect(bash?.inputSchema).toEqual(mcp.world.tools.at(-1)?.inputSchema);
    expect(bash?.annotations).toMatchObject({ readOnlyHint: false, destructiveHint: true });
    expect(tools[0]?.annotations).toMatchObject({ readOnlyHint: true });
    const rollback = tools.find(({ name }) => name === "rollback");
    expect(rollback?.inputSchema).toMatchObject({ required: ["to"], additionalProperties: false });
    expect(mcp.client.getInstructions()).toContain("Every turn is a snapshot");
  });

  it("can be listed without making a sandbox, where the catalog is known without one", async () => {
    const tool = {
      name: "known",
      tier: 1,
      description: "d",
      inputSchema: { type: "object" },
      aliases: [],
      readOnly: true,
    };
    await using mcp = await openMcp({ catalog: async () => [tool] });
    expect((await mcp.client.listTools()).tools[0]?.name).toBe("known");
    expect(mcp.world.created).toEqual([]);
  });
});

describe("a call of a sandbox's tool", () => {
  it("answers with the output, and with the facts beside it", async () => {
    await using mcp = await openMcp();
    mcp.world.exit = { exitCode: 3, exitReason: ExitReason.EXITED, content: "no such thing\n", isError: true };
    const result = await mcp.call("bash", { cmd: "false" });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toBe("no such thing\n\n[exit code 3]");
    expect(result._meta?.["turnbox/call"]).toMatchObject({ sandboxId: MADE, exitCode: 3, exitReason: "exited" });
    // Hosts that find it show nothing else to the model.
    expect(result.structuredContent).toBeUndefined();
    expect(mcp.world.executed[0]).toMatchObject({ toolName: "bash", params: { cmd: "false" } });
  });

  it("passes images, and says where there is no output", async () => {
    await using mcp = await openMcp();
    const data = new Uint8Array([1, 2, 3]);
    mcp.world.exit = {
      exitReason: ExitReason.EXITED,
      blocks: [{ block: { case: "image", value: { mediaType: "image/png", data } } }],
    };
    expect((await mcp.call("read_file", { path: "a.png" })).content).toEqual([
      { type: "image", mimeType: "image/png", data: "AQID" },
    ]);
    for (const blocks of [[], [{ block: { case: "text" as const, value: { text: "" } } }]]) {
      mcp.world.exit = { exitReason: ExitReason.EXITED, content: "", blocks };
      expect(textOf(await mcp.call("bash", { cmd: "true" }))).toBe("[no output]");
    }
  });

  it("has an id that is the same for the same request only", () => {
    expect(toolCallIdOf("s", 1)).toBe(toolCallIdOf("s", 1));
    const ids = [toolCallIdOf("s", 1), toolCallIdOf("s", "1"), toolCallIdOf("s", 2), toolCallIdOf("t", 1)];
    expect(new Set(ids).size).toBe(4);
    expect(toolCallIdOf("s", "x".repeat(10_000)).length).toBeLessThanOrEqual(128);
  });

  it("is cancelled in the sandbox when the client cancels the request", async () => {
    await using mcp = await openMcp();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    mcp.world.hold = promise;
    const cancelling = new AbortController();
    const call = mcp.client.callTool({ name: "bash", arguments: { cmd: "sleep 100" } }, undefined, {
      signal: cancelling.signal,
    });
    await eventually(() => mcp.world.executed.length === 1);
    cancelling.abort("enough");
    await expect(call).rejects.toThrow();
    await eventually(() => mcp.world.cancelled.length > 0);
    expect(mcp.world.cancelled[0]).toBe(mcp.world.executed[0]?.toolCallId);
    resolve(undefined);
  });

  it("reports progress where the client asked for it, also of a silent command", async () => {
    const clock = createManualClock();
    await using mcp = await openMcp({ clock });
    const { promise, resolve } = Promise.withResolvers<undefined>();
    mcp.world.hold = promise;
    const seen: { progress: number; message?: string | undefined }[] = [];
    const call = mcp.client.callTool({ name: "bash", arguments: { cmd: "make" } }, undefined, {
      onprogress: ({ progress, message }) => seen.push({ progress, message }),
    });
    await eventually(() => mcp.world.executed.length === 1 && clock.sleeping > 0);
    await clock.advance(1000);
    await clock.advance(1000);
    await eventually(() => seen.length === 2);
    expect(seen.map(({ progress }) => progress)).toEqual([1, 2]);
    expect(seen[1]?.message).toContain("out");
    resolve(undefined);
    await call;
    expect(clock.sleeping).toBe(0);
  });

  it("seals a turn afterwards where that is wanted, not after a read", async () => {
    await using mcp = await openMcp({ turns: "after each call" });
    await mcp.call("read_file", { path: "a" });
    expect(mcp.world.outcomes).toEqual([]);
    const result = await mcp.call("bash", { cmd: "make" });
    expect(textOf(result)).toContain("[turn 4 is sealed]");
    expect(result._meta?.["turnbox/turn"]).toMatchObject({ turn: 4, snapshotId: "s4" });
    expect(mcp.world.outcomes).toHaveLength(1);
  });
});

describe("turns", () => {
  it("are sealed, listed, gone back to and taken back", async () => {
    await using mcp = await openMcp();
    const sealed = await mcp.call("turn", { note: "tests pass" });
    expect(textOf(sealed)).toBe("Turn 4 is sealed (s4).");
    expect(sealed.structuredContent).toMatchObject({ turn: 4, snapshotId: "s4", unchanged: false });

    const listed = await mcp.call("turns");
    expect(listed.structuredContent?.["turns"]).toMatchObject([
      { turn: 1 },
      { turn: 2, outcome: "failed" },
      { turn: 3 },
    ]);
    expect(textOf(listed)).toContain("the present files go on from here");

    // A number is as good as its digits.
    for (const to of ["1", 1, "turn 1"]) await mcp.call("rollback", { to });
    expect(mcp.world.rolledBackTo).toEqual(["s1", "s1", "s1"]);
    expect(textOf(await mcp.call("rollback", { to: "s2" }))).toContain("`undo` takes this back (u2)");
    await mcp.call("undo");
    expect(mcp.world.rolledBackTo.at(-1)).toBe("u1");
  });

  it("are compared, the last one with now unless said otherwise", async () => {
    await using mcp = await openMcp();
    expect(textOf(await mcp.call("diff"))).toBe("Nothing changed.");
    expect(mcp.world.diffed[0]).toMatchObject({ fromSnapshotId: "s3" });
    mcp.world.changes = [{ path: "a.txt", oldSizeBytes: 1n, newSizeBytes: 2n, unifiedDiff: "@@ -1 +1 @@\n-a\n+b\n" }];
    const changed = await mcp.call("diff", { from: 1, to: 2 });
    expect(textOf(changed)).toContain("a.txt");
    expect(textOf(changed)).toContain("+b");
    expect(changed.structuredContent?.["changes"]).toMatchObject([{ path: "a.txt", unifiedDiff: expect.any(String) }]);
  });
});

describe("forks", () => {
  it("are made, worked in and discarded; only those of the session", async () => {
    await using mcp = await openMcp();
    const forked = await mcp.call("fork", { count: 2, from: "1" });
    const [first, second] = ["fleet:i1:child0", "fleet:i1:child1"];
    expect(forked.structuredContent).toMatchObject({ parent: MADE, sandboxes: [first, second] });
    expect(mcp.world.forked[0]).toMatchObject({ count: 2, snapshotId: "s1" });

    await mcp.call("use_sandbox", { sandbox: first });
    await mcp.call("bash", { cmd: "ls" });
    expect(mcp.world.executed.at(-1)?.sessionId).toBe("child0");

    const foreign = await mcp.call("use_sandbox", { sandbox: PRESENT });
    expect(foreign.isError).toBe(true);
    expect(textOf(foreign)).toContain("is not one of yours");

    await mcp.call("discard_fork", { sandbox: first });
    expect(mcp.world.destroyed).toEqual([first]);
    await mcp.call("bash", { cmd: "ls" });
    expect(mcp.world.executed.at(-1)?.sessionId).toBe("new");
    expect(textOf(await mcp.call("discard_fork", { sandbox: MADE }))).toContain("only forks");
  });

  it("are bounded, and end with the session", async () => {
    const world = newMcpWorld();
    {
      await using mcp = await openMcp({ world, sandboxId: PRESENT });
      expect((await mcp.call("fork", { count: 11 })).isError).toBe(true);
      await mcp.call("fork", { count: 2 });
    }
    // What was there before is left alone.
    expect(world.destroyed.toSorted()).toEqual(["fleet:i1:child0", "fleet:i1:child1"]);
  });
});

describe("failures", () => {
  it("of ours are results that say what a model can do", async () => {
    await using mcp = await openMcp();
    const result = await mcp.call("rollback", { to: "99" });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(/^SNAPSHOT_NOT_FOUND: .*99[^]*What to do: `turns` lists/);
    expect(result._meta?.["turnbox/error"]).toMatchObject({ reason: "SNAPSHOT_NOT_FOUND", retryable: false });
    const wrong = await mcp.call("rollback", { too: "1" });
    expect(wrong.isError).toBe(true);
    expect(textOf(wrong)).toContain("INVALID_ARGUMENT");
  });

  it("of the protocol are errors of the protocol", async () => {
    await using mcp = await openMcp();
    await expect(mcp.call("nope")).rejects.toMatchObject({ code: -32602 });
  });

  it("to make a sandbox are shown, and the next call tries again", async () => {
    const world = newMcpWorld();
    let tries = 0;
    const spec = createSpec(world);
    const workspace = createWorkspace({
      ...spec,
      open: async () => {
        tries += 1;
        if (tries === 1) throw new Error("not now");
        return await spec.open();
      },
    });
    const { signal } = new AbortController();
    await expect(workspace.current({ signal })).rejects.toThrow("not now");
    expect((await workspace.current({ signal })).id).toBe(MADE);
    await workspace[Symbol.asyncDispose]();
    expect(world.destroyed).toEqual([MADE]);
  });
});

describe("the sandbox of a session", () => {
  it("is made once, by the first call, and destroyed with the session", async () => {
    const world = newMcpWorld();
    {
      await using mcp = await openMcp({ world });
      expect(world.created).toEqual([]);
      await Promise.all([mcp.call("bash", { cmd: "a" }), mcp.call("bash", { cmd: "b" }), mcp.call("turns")]);
      expect(world.created).toHaveLength(1);
      expect(world.created[0]?.labels).toEqual({ "made-by": "turnbox-mcp" });
    }
    expect(world.destroyed).toEqual([MADE]);
  });

  it("is kept where that is wanted", async () => {
    const world = newMcpWorld();
    {
      await using mcp = await openMcp({ world, atEnd: "keep" });
      await mcp.call("turns");
    }
    expect(world.created).toHaveLength(1);
    expect(world.destroyed).toEqual([]);
  });

  it("is given time for as long as the session lives", async () => {
    const clock = createManualClock();
    await using mcp = await openMcp({ clock, leaseMs: 24 * 3_600_000 });
    await mcp.call("turns");
    await clock.advance(3_600_000);
    await eventually(() => mcp.world.extended.length === 1);
    expect(mcp.world.extended[0]?.ttl?.seconds).toBe(86_400n);
  });
});

/** Waits for what happens by itself on the next turns of the event loop. */
async function eventually(isSo: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 5000;
  while (!isSo()) {
    if (performance.now() > deadlineMs) throw new Error(`not within 5 s: ${isSo.toString()}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
