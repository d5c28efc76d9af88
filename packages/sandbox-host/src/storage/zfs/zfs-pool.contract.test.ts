import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, realpath, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { createChildCommandRunner } from "@turnbox/core";
import type { Storage } from "../storage.ts";
import { poolOf, removePool } from "./remove-pool.suite.ts";
import { ZfsStorage } from "./zfs-storage.ts";

const call = { signal: new AbortController().signal };
const base = { name: "busybox", digest: "ab12" };
const runner = createChildCommandRunner();
const DEADLINE_MS = 60_000;
const exec = promisify(execFile);

async function zfs(...args: readonly string[]): Promise<string> {
  return (await exec("zfs", args)).stdout;
}

async function createPlace() {
  const home = await realpath(await mkdtemp(join(tmpdir(), "turnbox-pool-")));
  const create = (): Storage => new ZfsStorage({ runner, home, poolSizeBytes: 512 * 1024 ** 2 });
  return {
    home,
    pool: poolOf(home),
    create,
    [Symbol.asyncDispose]: async () => {
      await removePool({ runner, home });
      await rm(home, { recursive: true, force: true });
    },
  };
}

async function createOpened() {
  const place = await createPlace();
  const storage = place.create();
  await storage.open(call);
  await storage.createBase(base, (directory) => writeFile(join(directory, "hello"), "from the base"), call);
  const spec = { token: "t1", origin: { kind: "base", base }, quotaBytes: 16 * 1024 ** 2, marks: { a: "b" } } as const;
  const head = await storage.createSession(spec, call);
  return { ...place, storage, head };
}

describe("a zfs home", () => {
  it(
    "gives every clone its own properties, and mounts it without setuid and devices",
    async () => {
      await using place = await createOpened();
      const { pool, head, storage } = place;
      const second = await storage.createHead(
        { token: "t1", generation: 2, origin: { kind: "base", base }, refquotaBytes: 9_000_000, marks: {} },
        call,
      );
      const get = async (generation: number): Promise<string> =>
        await zfs(
          "get",
          "-Hp",
          "-o",
          "value",
          "atime,setuid,devices,canmount,refquota",
          `${pool}/sessions/t1/g${generation}`,
        );
      expect(await get(1)).toBe(`off\noff\noff\nnoauto\n${head.refquotaBytes ?? 0}\n`);
      expect(await get(2)).toBe("off\noff\noff\nnoauto\n9000000\n");
      const mounts = (await readFile("/proc/self/mountinfo", "utf8")).split("\n");
      for (const { path } of [head, second])
        expect(mounts.find((line) => line.includes(` ${path} `))).toMatch(/ rw,nosuid,nodev,/);
      const outer = Number(await zfs("get", "-Hp", "-o", "value", "quota", `${pool}/sessions/t1`));
      expect(outer).toBe(3 * (head.refquotaBytes ?? 0));
    },
    DEADLINE_MS,
  );

  it(
    "mounts a head over what was written to its place while it was not mounted",
    async () => {
      await using place = await createOpened();
      const { head, storage } = place;
      await storage.unmountHead(head, call);
      await writeFile(join(head.path, "stray"), "x");
      await storage.mountHead(head, call);
      expect(await readdir(head.path)).toEqual(["hello"]);
      await storage.destroySession("t1", call);
      await expect(stat(head.path)).rejects.toMatchObject({ code: "ENOENT" });
    },
    DEADLINE_MS,
  );

  it(
    "keeps bases read-only and unmounted, a reserve, and a place for journals; tokens cannot be listed",
    async () => {
      await using place = await createOpened();
      const { pool, home } = place;
      expect(await zfs("get", "-Hp", "-o", "value", "readonly,mounted", `${pool}/bases/busybox/ab12`)).toBe("on\nno\n");
      expect(Number(await zfs("get", "-Hp", "-o", "value", "refreservation", `${pool}/reserved`))).toBe(64 * 1024 ** 2);
      expect(await zfs("get", "-Hp", "-o", "value", "mountpoint", `${pool}/journals`)).toBe("none\n");
      expect((await stat(join(home, "mnt"))).mode & 0o777).toBe(0o711);
    },
    DEADLINE_MS,
  );

  it(
    "makes a base again that a crash left half-made",
    async () => {
      await using place = await createOpened();
      const { pool, home, storage } = place;
      const half = { name: "half", digest: "cd34" };
      const properties = [
        "-o",
        "mountpoint=none",
        "-o",
        `turnbox:home=${(await zfs("get", "-H", "-o", "value", "turnbox:home", pool)).trim()}`,
      ];
      await zfs("create", ...properties, `${pool}/bases/half`);
      await zfs("create", ...properties, `${pool}/bases/half/cd34`);
      expect((await storage.listBases(call)).map(({ name }) => name)).toEqual(["busybox"]);
      await storage.createBase(half, (directory) => writeFile(join(directory, "a"), home), call);
      expect((await storage.listBases(call)).map(({ name }) => name)).toEqual(["busybox", "half"]);
    },
    DEADLINE_MS,
  );

  it(
    "destroys a session whose heads were promoted",
    async () => {
      await using place = await createOpened();
      const { pool, head, storage } = place;
      await storage.seal(head, "s1", {}, call);
      const origin = { kind: "snapshot", snapshot: { token: "t1", name: "s1" } } as const;
      await storage.createHead({ token: "t1", generation: 2, origin, marks: {} }, call);
      await zfs("promote", `${pool}/sessions/t1/g2`);
      expect(await storage.listSnapshots("t1", call)).toMatchObject([{ name: "s1", generation: 2 }]);
      await expect(storage.destroyHead({ token: "t1", generation: 2 }, call)).rejects.toMatchObject({
        reason: "SNAPSHOT_IN_USE",
      });
      await storage.destroySession("t1", call);
      expect(await storage.inventory(call)).toEqual([]);
    },
    DEADLINE_MS,
  );

  it(
    "neither lists nor touches datasets that do not carry its mark",
    async () => {
      await using place = await createOpened();
      const { pool, storage } = place;
      await zfs("create", "-o", "mountpoint=none", `${pool}/sessions/foreign`);
      await zfs("create", "-o", "mountpoint=none", `${pool}/sessions/t1/foreign`);
      expect((await storage.inventory(call)).map(({ token, heads }) => [token, heads.length])).toEqual([["t1", 1]]);
      for (const token of ["foreign", "t1"]) {
        await expect(storage.destroySession(token, call)).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      }
      const names = (await zfs("list", "-H", "-r", "-o", "name", `${pool}/sessions`)).trim().split("\n");
      expect(names).toEqual(["", "/foreign", "/t1", "/t1/foreign", "/t1/g1"].map((end) => `${pool}/sessions${end}`));
    },
    DEADLINE_MS,
  );

  it(
    "leaves a pool of its name alone that is made of something else",
    async () => {
      await using place = await createPlace();
      const { home, pool } = place;
      const image = join(home, "another.img");
      await writeFile(image, "");
      await truncate(image, 128 * 1024 ** 2);
      await exec("zpool", ["create", "-o", "cachefile=none", "-O", "mountpoint=none", pool, image]);
      await expect(place.create().open(call)).rejects.toMatchObject({
        reason: "STORAGE_UNAVAILABLE",
        metadata: { pool },
      });
      expect(await zfs("list", "-H", "-r", "-o", "name", pool)).toBe(`${pool}\n`);
    },
    DEADLINE_MS,
  );

  it(
    "is not destroyed while a head is in use, nor with a pool of its name that is not its own",
    async () => {
      await using place = await createOpened();
      const user = spawn("sleep", ["60"], { cwd: place.head.path, stdio: "ignore" });
      await once(user, "spawn");
      const impatient = new ZfsStorage({
        runner,
        home: place.home,
        poolSizeBytes: 1,
        limits: { resetPatienceMs: 200 },
      });
      await expect(impatient.destroyAll(call)).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      expect(await readFile(join(place.head.path, "hello"), "utf8")).toBe("from the base");
      user.kill("SIGKILL");
      await once(user, "exit");
      await zfs("set", "turnbox:home=another", place.pool);
      await expect(place.create().destroyAll(call)).rejects.toMatchObject({ metadata: { pool: place.pool } });
      expect(await zfs("list", "-H", "-o", "name", `${place.pool}/sessions/t1`)).toBe(`${place.pool}/sessions/t1\n`);
    },
    DEADLINE_MS,
  );

  it(
    "imports its pool after an export, and never makes a new one over an image that holds another",
    async () => {
      await using place = await createOpened();
      const { storage, head, pool, home } = place;
      await writeFile(join(head.path, "work"), "kept");
      await storage.unmountHead(head, call);
      await retried(() => exec("zpool", ["export", pool]));
      const again = place.create();
      await again.open(call);
      expect(await readFile(join((await again.mountHead(head, call)).path, "work"), "utf8")).toBe("kept");
      await again.unmountHead(head, call);
      await retried(() => exec("zpool", ["export", pool]));
      // The image comes to a home of another path, and so of another pool name.
      const moved = join(home, "moved");
      const stranger = new ZfsStorage({ runner, home: moved, poolSizeBytes: 512 * 1024 ** 2 });
      await exec("mkdir", ["-p", join(moved, "pool")]);
      await exec("cp", ["--sparse=always", join(home, "pool", "pool.img"), join(moved, "pool", "pool.img")]);
      await expect(stranger.open(call)).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      await rm(moved, { recursive: true });
      await place.create().open(call);
    },
    DEADLINE_MS,
  );
});

/** zfs-fuse is busy for a moment after an unmount. */
async function retried(attempt: () => Promise<unknown>): Promise<void> {
  for (let triesLeft = 50; ; triesLeft -= 1) {
    try {
      await attempt();
      return;
    } catch (thrown) {
      if (triesLeft === 0) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
