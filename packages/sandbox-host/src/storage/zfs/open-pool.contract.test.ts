import { once } from "node:events";
import { readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import type { Head, Storage } from "../storage.ts";
import { eventually } from "../suite/suite-fixture.suite.ts";
import { call, createNamedHome, DEADLINE_MS, use } from "./named-home.suite.ts";
import { createPrivateCorner, type PrivateCorner } from "./private-daemon.suite.ts";
import { ZfsStorage } from "./zfs-storage.ts";

const base = { name: "mini", digest: "ab12" };

function createStorage(corner: PrivateCorner, home = corner.home): Storage {
  return new ZfsStorage({
    runner: corner.runner,
    home,
    poolSizeBytes: 512 * 1024 ** 2,
    mountTablePath: corner.mountTablePath,
  });
}

/** A corner of its own, and a storage that is open there. */
async function openCorner() {
  await using stack = new AsyncDisposableStack();
  const corner = stack.use(await createPrivateCorner());
  const storage = createStorage(corner);
  await storage.open(call);
  const owned = stack.move();
  return { corner, storage, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function createSession(corner: PrivateCorner, storage: Storage, token: string): Promise<Head> {
  await storage.createBase(
    base,
    (directory) => writeFile(corner.seen(join(directory, "hello")), "from the base"),
    call,
  );
  return await storage.createSession({ token, origin: { kind: "base", base }, marks: { session_id: token } }, call);
}

async function datasetAt(corner: PrivateCorner, path: string): Promise<string> {
  const args = ["--noheadings", "--output", "SOURCE", "--mountpoint", path];
  return (await corner.runner.run({ command: "findmnt", args, deadlineMs: 5000 })).stdout.trim();
}

describe("a mount that is lost while the daemon lives", () => {
  it(
    "is reported, and mounted again",
    async () => {
      await using place = await openCorner();
      const { corner, storage } = place;
      const lost = await createSession(corner, storage, "t1");
      const other = await createSession(corner, storage, "t2");
      await corner.abortMount(lost.path);
      expect((await storage.status(call)).state).toBe("unavailable");
      expect(await storage.open(call)).toEqual({ remounted: [{ token: "t1", generation: 1 }] });
      expect((await storage.status(call)).state).toBe("online");
      await storage.seal(other, "s1", {}, call);
      expect(await readFile(corner.seen(join(lost.path, "hello")), "utf8")).toBe("from the base");
    },
    DEADLINE_MS,
  );

  it(
    "does not hold up other mounts while a process is still in it",
    async () => {
      await using place = await openCorner();
      const { corner, storage } = place;
      const lost = await createSession(corner, storage, "t1");
      const other = await createSession(corner, storage, "t2");
      const inside = await corner.runner.start(
        { command: "sh", args: ["-c", 'cd "$0" && echo in && exec cat', lost.path], deadlineMs: DEADLINE_MS },
        call,
      );
      await once(inside.stdout, "data");
      // As an open leaves it that took the mount for dead and was cut off.
      const targets = [{ dataset: await datasetAt(corner, lost.path), path: lost.path }];
      await writeFile(join(corner.home, "pool", "lost-mounts.json"), JSON.stringify(targets));
      await corner.runner.run({ command: "umount", args: ["-l", lost.path], deadlineMs: 5000 });

      expect(await storage.open(call)).toEqual({ remounted: [{ token: "t1", generation: 1 }] });
      expect((await storage.status(call)).state).toBe("online");
      await storage.seal(other, "s1", {}, call);
      await expect(storage.mountHead(lost, call)).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      inside.stdin.end();
      await inside.exit;
      await storage.mountHead(lost, call);
      expect(await readFile(corner.seen(join(lost.path, "hello")), "utf8")).toBe("from the base");
    },
    DEADLINE_MS,
  );
});

describe("zfs-fuse that dies", () => {
  it(
    "is started if there is none, and after a crash brings back pool, mounts and sealed files",
    async () => {
      await using place = await openCorner();
      const { corner, storage } = place;
      const head = await createSession(corner, storage, "t1");
      const idle = await createSession(corner, storage, "t2");
      await storage.unmountHead(idle, call);
      await writeFile(corner.seen(join(head.path, "work")), "sealed");
      await storage.seal(head, "s1", { turn: "1" }, call);

      await corner.killDaemon();
      expect((await storage.status(call)).state).toBe("unavailable");
      await expect(storage.seal(head, "s2", {}, call)).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      await expect(readFile(corner.seen(join(head.path, "work")))).rejects.toMatchObject({ code: "ENOTCONN" });

      const onRemounted = () => Promise.reject(new Error("the caller could not remember it"));
      await expect(storage.open({ ...call, onRemounted })).rejects.toThrow("could not remember");
      expect(await storage.open(call)).toEqual({ remounted: [{ token: "t1", generation: 1 }] });
      expect(await storage.open(call)).toEqual({ remounted: [] });
      expect((await storage.status(call)).state).toBe("online");
      expect(await readFile(corner.seen(join(head.path, "work")), "utf8")).toBe("sealed");
      const sessions = await storage.inventory(call);
      expect(sessions.map(({ token, heads, snapshots }) => [token, heads[0]?.mounted, snapshots])).toEqual([
        ["t1", "yes", ["s1"]],
        ["t2", "no", []],
      ]);
      await storage.seal(head, "s2", {}, call);
      await storage.destroySession("t1", call);
      expect(await corner.countDaemons()).toBe(1);
    },
    DEADLINE_MS,
  );

  it(
    "has lost nothing of what was flushed, sealed or not",
    async () => {
      await using place = await openCorner();
      const { corner, storage } = place;
      const head = await createSession(corner, storage, "t1");
      const content = "x".repeat(300_000);
      await writeFile(corner.seen(join(head.path, "work")), content);
      await storage.flush(call);
      await corner.killDaemon();
      await storage.open(call);
      expect(await readFile(corner.seen(join(head.path, "work")), "utf8")).toBe(content);
    },
    DEADLINE_MS,
  );

  it(
    "and was started again by another program leaves dead mounts, which are mounted again",
    async () => {
      await using place = await openCorner();
      const { corner, storage } = place;
      const head = await createSession(corner, storage, "t1");
      await writeFile(corner.seen(join(head.path, "work")), "sealed");
      await storage.seal(head, "s1", {}, call);
      await corner.killDaemon();
      const other = createStorage(corner, join(corner.home, "other"));
      await other.open(call);

      const restarted = createStorage(corner);
      expect(await restarted.open(call)).toEqual({ remounted: [{ token: "t1", generation: 1 }] });
      expect(await readFile(corner.seen(join(head.path, "work")), "utf8")).toBe("sealed");
      expect((await readdir(corner.seen(head.path))).sort()).toEqual(["hello", "work"]);
    },
    DEADLINE_MS,
  );

  it(
    "leaves views that are open with their files, and nothing of those that are not",
    async () => {
      await using place = await openCorner();
      const { corner, storage } = place;
      const head = await createSession(corner, storage, "t1");
      const view = await storage.openView({ kind: "head", head }, call);
      await corner.killDaemon();
      await storage.open(call);
      expect(await readFile(corner.seen(join(view.path, "hello")), "utf8")).toBe("from the base");
      await corner.killDaemon();
      const restarted = createStorage(corner);
      await restarted.open(call);
      expect(await readFile(corner.mountTablePath, "utf8")).not.toContain(view.path);
      await restarted.destroySession("t1", call);
      await view[Symbol.asyncDispose]();
    },
    DEADLINE_MS,
  );

  it(
    "is started once when two homes open at the same moment",
    async () => {
      await using corner = await createPrivateCorner();
      const homes = ["one", "two", "three"].map((name) => createStorage(corner, join(corner.home, name)));
      await Promise.all(homes.map((storage) => storage.open(call)));
      expect(await corner.countDaemons()).toBe(1);
      expect(await Promise.all(homes.map(async (storage) => (await storage.status(call)).state))).toEqual([
        "online",
        "online",
        "online",
      ]);
    },
    DEADLINE_MS,
  );

  it(
    "is not mistaken for one that hangs, which keeps its mounts and is never stopped",
    async () => {
      await using place = await openCorner();
      const { corner, storage } = place;
      const head = await createSession(corner, storage, "t1");
      await corner.signalDaemon("SIGSTOP");
      try {
        await expect(storage.open(call)).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
        expect(await readFile(corner.mountTablePath, "utf8")).toContain(head.path);
      } finally {
        await corner.signalDaemon("SIGCONT");
      }
      await storage.open(call);
      expect(await readFile(corner.seen(join(head.path, "hello")), "utf8")).toBe("from the base");
      expect(await corner.countDaemons()).toBe(1);
    },
    DEADLINE_MS,
  );

  it(
    "and was started again by another program shows in the status, by its mounts alone",
    async () => {
      await using place = await openCorner();
      const { corner, storage } = place;
      const head = await createSession(corner, storage, "t1");
      await corner.killDaemon();
      await createStorage(corner, join(corner.home, "other")).open(call);
      // The pool alone, without the mounts.
      await corner.runner.run({
        command: "zpool",
        args: ["import", "-d", join(corner.home, "pool"), "-o", "cachefile=none", "-a"],
        deadlineMs: 20_000,
      });
      expect(await storage.status(call)).toMatchObject({ state: "unavailable" });
      await expect(storage.mountHead(head, call)).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      await storage.open(call);
      expect((await storage.status(call)).state).toBe("online");
      expect(await storage.mountHead(head, call)).toEqual(head);
    },
    DEADLINE_MS,
  );

  it(
    "lets heads be unmounted that it had mounted",
    async () => {
      await using place = await openCorner();
      const { corner, storage } = place;
      const head = await createSession(corner, storage, "t1");
      const other = await createSession(corner, storage, "t2");
      await corner.killDaemon();
      await storage.unmountHead(head, call);
      expect(await readFile(corner.mountTablePath, "utf8")).not.toContain(` ${head.path} `);
      expect(await storage.open(call)).toEqual({ remounted: [{ token: other.token, generation: 1 }] });
      expect((await storage.inventory(call)).map(({ token, heads }) => [token, heads[0]?.mounted])).toEqual([
        ["t1", "no"],
        ["t2", "yes"],
      ]);
    },
    DEADLINE_MS,
  );

  it(
    "while others work fails them, and none of their work is half of before and half of after",
    async () => {
      await using place = await openCorner();
      const { corner, storage } = place;
      const head = await createSession(corner, storage, "t1");
      const filling = Promise.withResolvers<void>();
      const healed = Promise.withResolvers<void>();
      const half = { name: "half", digest: "cd34" };
      const making = storage
        .createBase(
          half,
          async (directory) => {
            await writeFile(corner.seen(join(directory, "before")), "x");
            filling.resolve();
            await healed.promise;
            // The mount is gone, the directory below it is not.
            await writeFile(corner.seen(join(directory, "after")), "x");
          },
          call,
        )
        .catch((thrown: unknown) => thrown);
      await filling.promise;
      await corner.killDaemon();
      const opening = storage.open(call);
      const during = await Promise.allSettled(Array.from({ length: 5 }, () => storage.inventory(call)));
      for (const result of during)
        if (result.status === "rejected") expect(result.reason).toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      expect(await opening).toEqual({ remounted: [{ token: "t1", generation: 1 }] });
      healed.resolve();
      expect(await making).toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      expect((await storage.listBases(call)).map(({ name }) => name)).toEqual(["mini"]);
      await storage.createBase(half, (directory) => writeFile(corner.seen(join(directory, "whole")), "y"), call);
      const made = await storage.createSession({ token: "t3", origin: { kind: "base", base: half }, marks: {} }, call);
      expect(await readdir(corner.seen(made.path))).toEqual(["whole"]);
      await storage.seal(head, "s1", {}, call);
    },
    DEADLINE_MS,
  );

  it(
    "is healed in several attempts, the last of which reports all that was lost",
    async () => {
      await using place = await openCorner();
      const { corner, storage } = place;
      await createSession(corner, storage, "t1");
      await corner.killDaemon();
      const image = join(corner.home, "pool", "pool.img");
      const away = join(corner.home, "away.img");
      await rename(image, away);
      await writeFile(image, "no pool");
      await expect(storage.open(call)).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      expect((await storage.status(call)).state).toBe("unavailable");
      await expect(storage.inventory(call)).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      await rename(away, image);
      expect(await createStorage(corner).open(call)).toEqual({ remounted: [{ token: "t1", generation: 1 }] });
      expect(await storage.open(call)).toEqual({ remounted: [] });
      expect(await storage.inventory(call)).toHaveLength(1);
    },
    DEADLINE_MS,
  );

  it(
    "shows in a status that comes in time, as does one that hangs",
    async () => {
      await using place = await openCorner();
      const { corner, storage } = place;
      await createSession(corner, storage, "t1");
      await corner.signalDaemon("SIGSTOP");
      try {
        const startedMs = performance.now();
        expect((await storage.status(call)).state).toBe("unavailable");
        expect(performance.now() - startedMs).toBeLessThan(5000);
        const soon = { signal: AbortSignal.timeout(300) };
        expect(await storage.status(soon)).toMatchObject({ state: "unavailable", detail: "no answer" });
        await expect(storage.status({ signal: AbortSignal.abort() })).rejects.toMatchObject({ reason: "CANCELLED" });
      } finally {
        await corner.signalDaemon("SIGCONT");
      }
      await eventually(async () => {
        expect((await storage.status(call)).state).toBe("online");
      });
    },
    DEADLINE_MS,
  );
});

describe("a view that was left behind", () => {
  it(
    "keeps no storage from opening while it is in use, and goes afterwards",
    async () => {
      await using home = await createNamedHome();
      const { storage, head } = home;
      const view = await storage.openView({ kind: "head", head }, call);
      {
        await using _user = await use(view.path);
        await home.create().open(call);
        expect(await readFile(join(view.path, "hello"), "utf8")).toBe("from the base");
        await view[Symbol.asyncDispose]();
      }
      await eventually(async () => {
        await home.create().open(call);
        expect((await home.listed()).filter((name) => /views\/|@v-/.test(name))).toEqual([]);
      });
    },
    DEADLINE_MS,
  );
});
