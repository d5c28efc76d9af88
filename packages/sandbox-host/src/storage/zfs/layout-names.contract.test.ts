import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { base, call, createNamedHome, DEADLINE_MS, runner } from "./named-home.suite.ts";
import { ZfsStorage } from "./zfs-storage.ts";

describe("a zfs home with names of its own", () => {
  it(
    "is laid out by them, and holds nothing any more when everything in it was destroyed",
    async () => {
      await using home = await createNamedHome();
      const { storage, head } = home;
      expect(await home.listed()).toEqual(expect.arrayContaining(["/images/mini/ab12@base", "/agents/t1/g1"]));
      await storage.seal(head, "s1", {}, call);
      const second = await home.cloneOf("s1", 2);
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
      expect(await home.listed()).toContain("/agents/t1/g2@s1");
      for (const token of ["t2", "t1"]) await storage.destroySession(token, call);
      await storage.destroyBase(base, call);
      expect(await home.listed()).toEqual([
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
    "refuses a pool of that name that belongs to another home",
    async () => {
      await using home = await createNamedHome();
      const other = new ZfsStorage({
        runner,
        home: join(home.home, "other"),
        poolSizeBytes: 512 * 1024 ** 2,
        poolName: home.pool,
      });
      await expect(other.open(call)).rejects.toMatchObject({
        reason: "STORAGE_UNAVAILABLE",
        metadata: { pool: home.pool },
      });
      await expect(other.destroyAll(call)).rejects.toMatchObject({ metadata: { pool: home.pool } });
      expect((await home.storage.inventory(call)).map(({ token }) => token)).toEqual(["t1"]);
      expect(() => new ZfsStorage({ runner, home: home.home, poolSizeBytes: 1, poolName: "a/b" })).toThrow("poolName");
    },
    DEADLINE_MS,
  );
});
