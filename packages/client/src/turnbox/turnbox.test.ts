import { describe, expect, it } from "@jest/globals";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { SandboxError } from "@turnbox/core";
import { openRoom } from "../fake/room.suite.ts";
import { Turnbox } from "./turnbox.ts";

describe("connecting", () => {
  const connect = (options: Parameters<typeof Turnbox.connect>[0]): string => Turnbox.connect(options).url;

  it("takes what is given before what the environment says", () => {
    const env = { TURNBOX_URL: "http://10.0.0.1:1", TURNBOX_TOKEN: "t", TURNBOX_HOME: "/nonexistent" };
    expect(connect({ env })).toBe("http://10.0.0.1:1");
    expect(connect({ env, url: "http://10.0.0.2:2" })).toBe("http://10.0.0.2:2");
    expect(connect({ env: { TURNBOX_PORT: "7", TURNBOX_TOKEN: "t" } })).toBe("http://127.0.0.1:7");
  });

  it("refuses at once where there is no token, and where a named home has none, whatever the environment says", () => {
    expect(() => connect({ env: { TURNBOX_URL: "http://10.0.0.1:1" } })).toThrow(SandboxError);
    const env = { TURNBOX_URL: "http://10.0.0.1:1", TURNBOX_TOKEN: "t" };
    expect(() => connect({ env, home: "/nonexistent" })).toThrow(/no token/);
  });

  it("tells at once of a server that was never there, and waits for one that was", async () => {
    using room = await openRoom();
    room.harness.faults.set("ListSandboxes", ["refused"]);
    await room.harness.turnbox.list();
    expect(room.harness.sleptMs).toHaveLength(1);
    using nowhere = Turnbox.connect({ url: "http://127.0.0.1:1", token: "t", env: {} });
    await expect(nowhere.list()).rejects.toMatchObject({ reason: "SERVER_UNREACHABLE", retryable: true });
  });
});

describe("finding sandboxes", () => {
  it("knows them by id, by a unique beginning and by name", async () => {
    using room = await openRoom();
    const { turnbox } = room.harness;
    for (const reference of ["fleet:i1:abc123", "abc", "web"])
      expect(await turnbox.get(reference)).toMatchObject({ id: "fleet:i1:abc123", sessionId: "abc123", name: "web" });
    await expect(turnbox.get("ab")).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    await expect(turnbox.get("nope")).rejects.toMatchObject({ reason: "SANDBOX_NOT_FOUND" });
  });

  it("asks by the name, and lists only for the beginning of an id or where the server cannot be asked so", async () => {
    using room = await openRoom();
    const { turnbox, faults } = room.harness;
    await turnbox.get("web");
    expect(room.harness.sent("ListSandboxes")).toHaveLength(0);
    expect((await turnbox.handle("fleet:i1:any")).id).toBe("fleet:i1:any");
    faults.set("GetSandbox", [new SandboxError("INVALID_ARGUMENT", "sandbox_id: must have the form")]);
    expect((await turnbox.handle("web")).id).toBe("fleet:i1:abc123");
    expect(room.harness.sent("ListSandboxes")).toHaveLength(2);
  });

  it("knows what the server said when the handle was made", async () => {
    using room = await openRoom();
    const session = room.world.sandboxes[0]?.session;
    Object.assign(session ?? {}, { idleTimeout: durationFromMs(90_000) });
    const found = await room.harness.turnbox.get("web");
    expect(found.known).toMatchObject({ name: "web", state: "active", idleTimeoutMs: 90_000 });
    expect((await found.info()).idleTimeoutMs).toBe(90_000);
    expect((await room.harness.turnbox.handle("web")).known).toBeUndefined();
  });

  it("lists all pages, and whose sandboxes may be missing", async () => {
    using room = await openRoom();
    room.world.unreachableInstances = ["i9"];
    const { sandboxes, unreachableInstances } = await room.harness.turnbox.list();
    expect(sandboxes.map(({ id }) => id)).toEqual(["fleet:i1:abc123", "fleet:i1:abd999"]);
    expect(sandboxes[0]).toMatchObject({ name: "web", state: "active", turnCount: 2, spaceUsedBytes: 1536 });
    expect(sandboxes[1]?.name).toBeUndefined();
    expect(unreachableInstances).toEqual(["i9"]);
  });
});

describe("getOrCreate", () => {
  const exists = (sandboxId: string): SandboxError =>
    new SandboxError("SANDBOX_EXISTS", "taken", { metadata: { sandboxId } });

  it("makes it, or takes the one that has the name", async () => {
    using room = await openRoom();
    expect((await room.harness.turnbox.getOrCreate("new")).id).toBe("fleet:i1:new");
    room.harness.faults.set("CreateSandbox", [exists("fleet:i1:abc123")]);
    expect((await room.harness.turnbox.getOrCreate("web")).id).toBe("fleet:i1:abc123");
  });

  it("makes it again where it was destroyed between the two questions", async () => {
    using room = await openRoom();
    room.harness.faults.set("CreateSandbox", [exists("fleet:i1:gone"), exists("fleet:i1:gone")]);
    expect((await room.harness.turnbox.getOrCreate("web")).id).toBe("fleet:i1:new");
    expect(room.harness.sent("CreateSandbox")).toHaveLength(3);
  });
});

describe("disposing of a handle", () => {
  it("destroys what create made, and nothing else", async () => {
    using room = await openRoom();
    const { turnbox } = room.harness;
    {
      await using _made = await turnbox.create({ template: "mini" });
      await using _found = await turnbox.get("web");
      await using _named = await turnbox.getOrCreate("named");
    }
    expect(room.world.destroyed).toEqual(["fleet:i1:new"]);
  });

  it("leaves what was kept, and does not destroy twice", async () => {
    using room = await openRoom();
    const { turnbox } = room.harness;
    {
      await using _kept = (await turnbox.create()).keep();
    }
    expect(room.world.destroyed).toEqual([]);
    {
      await using sandbox = await turnbox.create();
      await sandbox.destroy();
    }
    expect(room.world.destroyed).toHaveLength(1);
  });

  it("destroys forks too, and tells of each that was not made", async () => {
    using room = await openRoom();
    room.world.room = 1;
    const forks = await room.sandbox.fork({ count: 2, from: 2, labels: { try: "1" } });
    expect(room.world.forked[0]).toMatchObject({ count: 2, snapshotId: "s2", labels: { try: "1" } });
    expect(forks[1]?.error).toMatchObject({ reason: "POOL_FULL", message: "the pool is full" });
    await forks[0]?.sandbox?.[Symbol.asyncDispose]();
    expect(room.world.destroyed).toEqual(["fleet:i1:child0"]);
  });

  it("closes the connection also where destroying fails, which it tells", async () => {
    using room = await openRoom();
    const made = await room.harness.turnbox.create();
    room.harness.faults.set("DestroySandbox", [new SandboxError("PERMISSION_DENIED", "no")]);
    await expect(made[Symbol.asyncDispose]()).rejects.toMatchObject({ reason: "PERMISSION_DENIED" });
    await expect(made.stats()).rejects.toMatchObject({ reason: "CANCELLED" });
  });
});

describe("creating", () => {
  it("sends everything that was asked for, under one key however often it is tried", async () => {
    using room = await openRoom();
    room.harness.faults.set("CreateSandbox", ["lost", new SandboxError("INTERNAL", "oops")]);
    await room.harness.turnbox.create({
      name: "n",
      ttlMs: 60_000,
      idleTimeoutMs: 1500,
      onTimeout: "pause",
      quotaBytes: 2 ** 40,
      network: { allowOutbound: true, allowList: ["pypi.org"], required: true },
    });
    const sent = room.harness.sent("CreateSandbox");
    expect(sent).toHaveLength(3);
    expect(new Set(sent.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
    expect(sent[0]).toMatchObject({ name: "n", quotaBytes: 2n ** 40n, ttl: { seconds: 60n } });
    expect(sent[0]?.["networkPolicy"]).toMatchObject({ allowOutbound: true, allowList: ["pypi.org"], required: true });
  });

  it.each([
    ["quotaBytes", { quotaBytes: -1 }],
    ["ttlMs", { ttlMs: Number.NaN }],
    ["resources.pids", { resources: { pids: 2 ** 40 } }],
  ])("refuses a bad %s before anything is sent", async (field, options) => {
    using room = await openRoom();
    await expect(room.harness.turnbox.create(options)).rejects.toMatchObject({
      reason: "INVALID_ARGUMENT",
      metadata: { field },
    });
    expect(room.harness.sent("CreateSandbox")).toHaveLength(0);
  });

  it("ends with the caller's signal", async () => {
    using room = await openRoom();
    const signal = AbortSignal.abort();
    await expect(room.harness.turnbox.create({ signal })).rejects.toMatchObject({ reason: "CANCELLED" });
  });
});
