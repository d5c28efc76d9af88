import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { createChildCommandRunner } from "@turnbox/core";
import type { Head, Storage } from "../storage.ts";
import { eventually } from "../suite/suite-fixture.suite.ts";
import { ZfsStorage } from "./zfs-storage.ts";

const call = { signal: new AbortController().signal };
const base = { name: "mini", digest: "ab12" };
const runner = createChildCommandRunner();
const DEADLINE_MS = 60_000;
const exec = promisify(execFile);
const NAMES = { basesDataset: "images", sessionsDataset: "agents" };

async function zfs(...args: readonly string[]): Promise<string> {
  return (await exec("zfs", args)).stdout;
}

/** A home whose names an operator has chosen, with one session. */
async function createPlace() {
  const home = await realpath(await mkdtemp(join(tmpdir(), "turnbox-names-")));
  const pool = `tbxt${String(process.pid)}`;
  const create = (): Storage =>
    new ZfsStorage({
      runner,
      home,
      poolSizeBytes: 512 * 1024 ** 2,
      poolName: pool,
      ...NAMES,
      limits: { busyPatienceMs: 1000 },
    });
  const storage = create();
  await storage.open(call);
  await storage.createBase(base, (directory) => writeFile(join(directory, "hello"), "from the base"), call);
  const head = await storage.createSession({ token: "t1", origin: { kind: "base", base }, marks: {} }, call);
  return {
    home,
    pool,
    create,
    storage,
    head,
    cloneOf: (name: string, generation: number): Promise<Head> =>
      storage.createHead(
        { token: "t1", generation, origin: { kind: "snapshot", snapshot: { token: "t1", name } }, marks: {} },
        call,
      ),
    listed: async (): Promise<readonly string[]> =>
      (await zfs("list", "-H", "-r", "-t", "filesystem,snapshot", "-o", "name", pool))
        .trim()
        .split("\n")
        .map((name) => name.slice(pool.length)),
    [Symbol.asyncDispose]: async () => {
      await storage.destroyAll(call);
      await rm(home, { recursive: true, force: true });
    },
  };
}

async function use(directory: string) {
  const user = spawn("sleep", ["60"], { cwd: directory, stdio: "ignore" });
  await once(user, "spawn");
  return {
    [Symbol.asyncDispose]: async () => {
      user.kill("SIGKILL");
      await once(user, "exit");
    },
  };
}

describe("a zfs home with names of its own", () => {
  it(
    "is laid out by them, and holds nothing any more when everything in it was destroyed",
    async () => {
      await using place = await createPlace();
      const { storage, head } = place;
      expect(await place.listed()).toEqual(expect.arrayContaining(["/images/mini/ab12@base", "/agents/t1/g1"]));
      await storage.seal(head, "s1", {}, call);
      const second = await place.cloneOf("s1", 2);
      const origin = { kind: "snapshot", snapshot: { token: "t1", name: "s1" } } as const;
      await storage.createSession({ token: "t2", origin, marks: {} }, call);
      {
        await using snapshot = await storage.openView(origin, call);
        await using now = await storage.openView({ kind: "head", head: second }, call);
        const options = (await readFile("/proc/self/mountinfo", "utf8")).split("\n");
        for (const { path } of [snapshot, now])
          expect(options.find((line) => line.includes(` ${path} `))).toMatch(/ r[ow],nosuid,nodev,/);
      }
      await storage.collectHeads(second, call);
      await storage.shrinkSession("t1", call);
      expect(await place.listed()).toContain("/agents/t1/g2@s1");
      for (const token of ["t2", "t1"]) await storage.destroySession(token, call);
      await storage.destroyBase(base, call);
      expect(await place.listed()).toEqual([
        "",
        "/agents",
        "/images",
        "/images/mini",
        "/journals",
        "/reserved",
        "/views",
      ]);
    },
    DEADLINE_MS,
  );

  it(
    "ends a head that a crash left between its promotion and its destruction",
    async () => {
      await using place = await createPlace();
      const { storage, head, pool } = place;
      await storage.seal(head, "s1", {}, call);
      const second = await place.cloneOf("s1", 2);
      await zfs("promote", `${pool}/agents/t1/g2`);
      expect(await storage.collectHeads(second, call)).toEqual([{ token: "t1", generation: 1 }]);
      expect(await storage.listSnapshots("t1", call)).toMatchObject([{ name: "s1", generation: 2 }]);
    },
    DEADLINE_MS,
  );

  it(
    "leaves a head that somebody works in, and takes it the next time",
    async () => {
      await using place = await createPlace();
      const { storage, head } = place;
      await storage.seal(head, "s1", {}, call);
      const second = await place.cloneOf("s1", 2);
      {
        await using _user = await use(head.path);
        expect(await storage.collectHeads(second, call)).toEqual([]);
        expect(await readFile(join(head.path, "hello"), "utf8")).toBe("from the base");
        const fork = { kind: "snapshot", snapshot: { token: "t1", name: "s1" } } as const;
        await storage.createSession({ token: "t2", origin: fork, marks: {} }, call);
        await expect(storage.shrinkSession("t1", call)).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      }
      await eventually(async () => {
        expect(await storage.collectHeads(second, call)).toEqual([{ token: "t1", generation: 1 }]);
      });
    },
    DEADLINE_MS,
  );

  it(
    "opens although a view that was left behind is still in use",
    async () => {
      await using place = await createPlace();
      const { storage, head } = place;
      const view = await storage.openView({ kind: "head", head }, call);
      {
        await using _user = await use(view.path);
        await place.create().open(call);
        expect(await readFile(join(view.path, "hello"), "utf8")).toBe("from the base");
        await view[Symbol.asyncDispose]();
      }
      await eventually(async () => {
        await place.create().open(call);
        expect((await place.listed()).filter((name) => /views\/|@v-/.test(name))).toEqual([]);
      });
    },
    DEADLINE_MS,
  );

  it(
    "refuses a pool of that name that belongs to another home",
    async () => {
      await using place = await createPlace();
      const other = new ZfsStorage({
        runner,
        home: join(place.home, "other"),
        poolSizeBytes: 512 * 1024 ** 2,
        poolName: place.pool,
      });
      await expect(other.open(call)).rejects.toMatchObject({
        reason: "STORAGE_UNAVAILABLE",
        metadata: { pool: place.pool },
      });
      await expect(other.destroyAll(call)).rejects.toMatchObject({ metadata: { pool: place.pool } });
      expect((await place.storage.inventory(call)).map(({ token }) => token)).toEqual(["t1"]);
      expect(() => new ZfsStorage({ runner, home: place.home, poolSizeBytes: 1, poolName: "a/b" })).toThrow("poolName");
    },
    DEADLINE_MS,
  );
});
