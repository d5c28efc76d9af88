import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { DatabaseThread } from "./database-thread.ts";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "turnbox-sqlite-"));
});

afterEach(() => {
  rmSync(directory, { recursive: true });
});

const open = (opening: "works" | "fails" = "works"): Promise<DatabaseThread> =>
  DatabaseThread.open({
    worker: new URL("./sample-worker.suite.ts", import.meta.url),
    data: { path: join(directory, "a.db"), opening },
    errors: {
      refused: ({ name, message }) => new Error(`refused: ${name}: ${message}`),
      failed: ({ name, message }) => new Error(`failed: ${name}: ${message}`),
      lost: () => new Error("lost"),
      closed: () => new Error("closed"),
    },
  });

describe("DatabaseThread", () => {
  it("does calls in their order and keeps what they changed", async () => {
    {
      await using thread = await open();
      await Promise.all(["a", "b", "c"].map((value) => thread.call("add", value)));
      expect(await thread.call("list", null)).toEqual(["a", "b", "c"]);
      expect(thread.pending).toBe(0);
    }
    await using again = await open();
    expect(await again.call("list", null)).toEqual(["a", "b", "c"]);
  });

  it("commits what arrives together at once, and gives it the safest of its levels", async () => {
    await using thread = await open();
    const held = thread.call("sleep", 100);
    const before = Number(await thread.call("commits", null));
    expect(await held).toBeDefined();
    const holding = thread.call("sleep", 100);
    const together = Array.from({ length: 50 }, (_, index) => thread.call("add", index));
    await Promise.all([holding, ...together]);
    expect(Number(await thread.call("commits", null)) - before).toBeLessThanOrEqual(4);
    expect(await thread.call("level", null)).toBe(1);
    const levels = await Promise.all([thread.call("sleep", 50), thread.call("level", null), thread.call("add", "x")]);
    expect(levels[1]).toBe(2);
  });

  it("undoes an operation that failed, and not its neighbours", async () => {
    await using thread = await open();
    const ends = await Promise.allSettled([
      thread.call("sleep", 50),
      thread.call("add", "a"),
      thread.call("addTwoAndFail", "b"),
      thread.call("add", "a"),
      thread.call("nothing", null),
      thread.call("add", "c"),
    ]);
    expect(ends.map(({ status }) => status)).toEqual([
      "fulfilled",
      "fulfilled",
      "rejected",
      "rejected",
      "rejected",
      "fulfilled",
    ]);
    expect(ends[2]).toMatchObject({ reason: new Error("failed: TypeError: after two") });
    expect(await thread.call("list", null)).toEqual(["a", "c"]);
  });

  it("fails all calls of a transaction that was ended from inside, and serves on", async () => {
    await using thread = await open();
    await thread.call("add", "before");
    await expect(thread.call("rollBack", null)).rejects.toThrow("failed");
    await thread.call("add", "after");
    expect(await thread.call("list", null)).toEqual(["before", "after"]);
  });

  it("refuses to open what the worker cannot, by name and message", async () => {
    await expect(open("fails")).rejects.toThrow("refused: LaterVersion: version 9");
  });

  it("does the calls made before its disposal, and none after", async () => {
    const thread = await open();
    const last = thread.call("add", "last");
    const disposed = thread[Symbol.asyncDispose]();
    await expect(thread.call("add", "late")).rejects.toThrow("closed");
    await expect(last).resolves.toBe(1);
    await disposed;
    await thread[Symbol.asyncDispose]();
    await expect(thread.call("list", null)).rejects.toThrow("closed");
  });

  it("fails what is under way when the thread ends by itself", async () => {
    const thread = await open();
    const ends = await Promise.allSettled([thread.call("crash", null), thread.call("add", "a")]);
    expect(ends.map((end) => String(end.status === "rejected" ? end.reason : end.value))).toEqual([
      "Error: lost",
      "Error: lost",
    ]);
    await thread[Symbol.asyncDispose]();
  });

  it("throws for what cannot be sent, and waits for nothing then", async () => {
    await using thread = await open();
    await expect(thread.call("add", () => undefined)).rejects.toThrow();
    expect(thread.pending).toBe(0);
  });
});
