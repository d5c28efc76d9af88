import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import type { Head, Storage } from "../storage.ts";
import { createPrivateCorner, type PrivateCorner } from "./private-daemon.suite.ts";
import { createZfsStorage } from "./zfs-storage.ts";

const call = { signal: new AbortController().signal };
const base = { name: "mini", digest: "ab12" };
const DEADLINE_MS = 60_000;

function createStorage(corner: PrivateCorner, home = corner.home): Storage {
  return createZfsStorage({
    runner: corner.runner,
    home,
    poolSizeBytes: 512 * 1024 ** 2,
    mountTablePath: corner.mountTablePath,
  });
}

async function createSession(corner: PrivateCorner, storage: Storage, token: string): Promise<Head> {
  await storage.createBase(
    base,
    (directory) => writeFile(corner.seen(join(directory, "hello")), "from the base"),
    call,
  );
  return await storage.createSession({ token, origin: { kind: "base", base }, marks: { session_id: token } }, call);
}

describe("zfs-fuse that dies", () => {
  it(
    "is started where there is none, and after a crash brings back pool, mounts and sealed files",
    async () => {
      await using corner = await createPrivateCorner();
      const storage = createStorage(corner);
      await storage.open(call);
      const head = await createSession(corner, storage, "t1");
      const idle = await createSession(corner, storage, "t2");
      await storage.unmountHead(idle, call);
      await writeFile(corner.seen(join(head.path, "work")), "sealed");
      await storage.seal(head, "s1", { turn: "1" }, call);

      await corner.killDaemon();
      expect((await storage.status(call)).state).toBe("unavailable");
      await expect(storage.seal(head, "s2", {}, call)).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      await expect(readFile(corner.seen(join(head.path, "work")))).rejects.toMatchObject({ code: "ENOTCONN" });

      await storage.open(call);
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
    "and was started again by somebody else leaves dead mounts, which are made good",
    async () => {
      await using corner = await createPrivateCorner();
      const storage = createStorage(corner);
      await storage.open(call);
      const head = await createSession(corner, storage, "t1");
      await writeFile(corner.seen(join(head.path, "work")), "sealed");
      await storage.seal(head, "s1", {}, call);
      await corner.killDaemon();
      const other = createStorage(corner, join(corner.home, "other"));
      await other.open(call);

      const restarted = createStorage(corner);
      await restarted.open(call);
      expect(await readFile(corner.seen(join(head.path, "work")), "utf8")).toBe("sealed");
      expect((await readdir(corner.seen(head.path))).sort()).toEqual(["hello", "work"]);
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
      await using corner = await createPrivateCorner();
      const storage = createStorage(corner);
      await storage.open(call);
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
});
