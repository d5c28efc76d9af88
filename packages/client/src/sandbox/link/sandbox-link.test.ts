import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { openRoom } from "../../fake/room.suite.ts";

const unauthenticated = (): SandboxError => new SandboxError("UNAUTHENTICATED", "the token ran out");

describe("the way to a sandbox", () => {
  it("is asked for with the first call, once for many, and shared by the handles of one sandbox", async () => {
    using room = await openRoom();
    const other = await room.harness.turnbox.get("fleet:i1:abc123");
    expect(room.harness.sent("ConnectSandbox")).toHaveLength(0);
    await Promise.all([room.sandbox.turns(), room.sandbox.tools(), other.stats()]);
    expect(room.harness.sent("ConnectSandbox")).toHaveLength(1);
    await room.sandbox[Symbol.asyncDispose]();
    await other.stats();
    expect(room.harness.closed).toEqual([]);
    await other[Symbol.asyncDispose]();
    expect(room.harness.closed).toEqual(["http://127.0.0.1:7999"]);
  });

  it("is asked for again, once, when the token ran out", async () => {
    using room = await openRoom();
    room.harness.faults.set("ListTools", [unauthenticated()]);
    await room.sandbox.tools();
    expect(room.harness.sent("ConnectSandbox")).toHaveLength(2);
    room.harness.faults.set("ListTools", [unauthenticated(), unauthenticated()]);
    await expect(room.sandbox.tools()).rejects.toMatchObject({ reason: "UNAUTHENTICATED" });
    expect(room.harness.sleptMs).toEqual([]);
  });

  it("is not asked for where the create has told it, until it leads nowhere", async () => {
    using room = await openRoom();
    room.world.access = "told";
    const made = (await room.harness.turnbox.create()).keep();
    await made.tools();
    expect(room.harness.sent("ConnectSandbox")).toHaveLength(0);
    room.world.sandboxes = room.world.sandboxes.map((sandbox) => ({ ...sandbox, sandboxId: made.id }));
    room.harness.faults.set("ListTools", [unauthenticated()]);
    await made.tools();
    expect(room.harness.sent("ConnectSandbox")).toHaveLength(1);
    await made[Symbol.asyncDispose]();
  });

  it("stays as it is while the server is away too", async () => {
    using room = await openRoom();
    await room.sandbox.stats();
    room.harness.faults.set("GetSessionStats", ["lost", "lost"]);
    room.harness.faults.set("ConnectSandbox", ["refused", "refused"]);
    expect(await room.sandbox.stats()).toMatchObject({ pids: 3 });
    expect(room.harness.closed).toEqual([]);
  });

  it("lets what runs over an old connection come to its end before it is closed", async () => {
    using room = await openRoom();
    const watching = room.sandbox.files.watch("/workspace")[Symbol.asyncIterator]();
    await watching.next();
    room.harness.faults.set("ListTools", [unauthenticated()]);
    await room.sandbox.tools();
    expect(room.harness.closed).toEqual([]);
    expect((await watching.next()).value).toMatchObject({ kind: "created" });
    await watching.return?.();
    expect(room.harness.closed).toHaveLength(1);
  });

  it("tells that the sandbox is gone", async () => {
    using room = await openRoom();
    await room.sandbox.stats();
    room.world.sandboxes = [];
    room.harness.faults.set("GetSessionStats", ["refused"]);
    await expect(room.sandbox.stats()).rejects.toMatchObject({ reason: "SANDBOX_NOT_FOUND" });
  });

  it("is over when its handle or everything is closed", async () => {
    using room = await openRoom();
    const other = await room.harness.turnbox.get("web");
    await room.sandbox[Symbol.asyncDispose]();
    await expect(room.sandbox.stats()).rejects.toMatchObject({ reason: "CANCELLED" });
    await other.stats();
    room.harness.turnbox.close();
    await expect(other.stats()).rejects.toMatchObject({ reason: "CANCELLED" });
    await expect(room.harness.turnbox.list()).rejects.toMatchObject({ reason: "CANCELLED" });
  });
});

describe("closing a handle", () => {
  it("ends its calls that are under way, and none of another handle's", async () => {
    using room = await openRoom();
    const other = await room.harness.turnbox.get("web");
    const [mine, theirs] = [room.sandbox, other].map(({ files }) => files.watch("/workspace")[Symbol.asyncIterator]());
    await mine?.next();
    await theirs?.next();
    await room.sandbox[Symbol.asyncDispose]();
    const read = async (): Promise<void> => {
      for (let events = 0; events < 3; events += 1) await mine?.next();
    };
    await expect(read()).rejects.toMatchObject({ reason: "CANCELLED" });
    expect((await theirs?.next())?.value).toMatchObject({ kind: "created" });
    await theirs?.return?.();
  });
});

describe("a call with a key", () => {
  it.each([
    ["TurnComplete", "turnKey"],
    ["CreateSnapshot", "idempotencyKey"],
    ["RollbackSession", "idempotencyKey"],
  ] as const)("keeps it over the attempts of %s", async (method, field) => {
    using room = await openRoom();
    room.harness.faults.set(method, ["lost", new SandboxError("OVERLOADED", "x", { retryAfterMs: 250 })]);
    const { sandbox } = room;
    if (method === "TurnComplete") await sandbox.turn();
    else if (method === "CreateSnapshot") await sandbox.snapshot("s");
    else await sandbox.rollback("s1");
    const keys = room.harness.sent(method).map((message) => message[field]);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(room.harness.sleptMs).toContain(250);
  });

  it("takes the caller's, and makes a new one for each call", async () => {
    using room = await openRoom();
    await room.sandbox.snapshot("s", { idempotencyKey: "mine" });
    await room.sandbox.snapshot("s");
    await room.sandbox.snapshot("s");
    const keys = room.harness.sent("CreateSnapshot").map(({ idempotencyKey }) => idempotencyKey);
    expect(keys[0]).toBe("mine");
    expect(new Set(keys).size).toBe(3);
  });
});
