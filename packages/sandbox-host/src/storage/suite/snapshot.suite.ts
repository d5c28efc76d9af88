import { lstat, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "@jest/globals";
import { randomToken } from "@turnbox/core";
import type { Origin } from "../storage.ts";
import { call, eventually, expectReason, MIB, test, writeNoise, type SuiteFixture } from "./suite-fixture.suite.ts";

export function snapshotSuite(suite: SuiteFixture): void {
  const { newBase, newSession, cloneOf, found, testSnapshots } = suite;

  describe("snapshots", () => {
    testSnapshots("hold what was written before, and not what came after", async () => {
      const head = await newSession();
      await writeFile(join(head.path, "a"), "before");
      await suite.storage.seal(head, "s1", { turn: "1" }, call);
      const [sealed] = await suite.storage.listSnapshots(head.token, call);
      expect(sealed).toMatchObject({ token: head.token, name: "s1", generation: 1, marks: { turn: "1" } });
      expect(sealed?.referencedBytes).toBeGreaterThan(0);
      expect(Math.abs(Date.now() - (sealed?.createdAtMs ?? 0))).toBeLessThan(120_000);
      await writeFile(join(head.path, "a"), "after");
      await writeFile(join(head.path, "b"), "after");
      const old = await cloneOf(head, "s1", 2);
      expect(await readFile(join(old.path, "a"), "utf8")).toBe("before");
      expect((await readdir(old.path)).sort()).toEqual(["a", "hello"]);
      expect(await readFile(join(head.path, "a"), "utf8")).toBe("after");
    });

    testSnapshots("hold what a file that is still open for writing has got", async () => {
      const head = await newSession();
      await using file = await open(join(head.path, "log"), "w");
      await file.write("one ");
      await suite.storage.seal(head, "s1", {}, call);
      await file.write("two");
      expect(await readFile(join((await cloneOf(head, "s1", 2)).path, "log"), "utf8")).toBe("one ");
    });

    testSnapshots("that were prepared are as those that were not, and hold what was written before", async () => {
      const head = await newSession();
      await writeFile(join(head.path, "a"), "before");
      const prepared = suite.storage.prewarm?.prepareSeal(head, call);
      if (prepared === undefined) return;
      await prepared.take("s1", { turn: "1" }, call);
      await prepared.take("s1", { turn: "other" }, call);
      await writeFile(join(head.path, "a"), "after");
      const [sealed, ...others] = await suite.storage.listSnapshots(head.token, call);
      expect([sealed?.name, sealed?.marks, others]).toEqual(["s1", { turn: "1" }, []]);
      expect(await readFile(join((await cloneOf(head, "s1", 2)).path, "a"), "utf8")).toBe("before");
      await expectReason(prepared.take("v-0123456789abcdef", {}, call), "INVALID_ARGUMENT");
    });

    testSnapshots("that are prepared and not taken leave nothing, and fail when they are taken", async () => {
      const head = await newSession();
      suite.storage.prewarm?.prepareSeal(head, call);
      expect(await suite.storage.listSnapshots(head.token, call)).toEqual([]);
      const absent = suite.storage.prewarm?.prepareSeal({ token: "nothing", generation: 1 }, call);
      if (absent !== undefined) await expectReason(absent.take("s1", {}, call), "SESSION_NOT_FOUND");
    });

    testSnapshots("of the same name are taken once", async () => {
      const head = await newSession();
      await suite.storage.seal(head, "s1", { turn: "1" }, call);
      const first = await suite.storage.listSnapshots(head.token, call);
      await writeFile(join(head.path, "later"), "x");
      await suite.storage.seal(head, "s1", { turn: "other" }, call);
      expect(
        (await suite.storage.listSnapshots(head.token, call)).map(({ name, createdAtMs, marks }) => ({
          name,
          createdAtMs,
          marks,
        })),
      ).toEqual(first.map(({ name, createdAtMs, marks }) => ({ name, createdAtMs, marks })));
      expect(await readdir((await cloneOf(head, "s1", 2)).path)).toEqual(["hello"]);
    });

    testSnapshots("are listed oldest first over all heads", async () => {
      const head = await newSession();
      for (const name of ["z", "m", "a"]) await suite.storage.seal(head, name, { name }, call);
      const second = await cloneOf(head, "m", 2);
      for (const name of ["k", "b"]) await suite.storage.seal(second, name, { name }, call);
      await suite.storage.seal(head, "c", { name: "c" }, call);
      const listed = await suite.storage.listSnapshots(head.token, call);
      expect(listed.map(({ name, generation }) => `${generation}${name}`)).toEqual([
        "1z",
        "1m",
        "1a",
        "2k",
        "2b",
        "1c",
      ]);
      expect(listed.map(({ marks }) => marks["name"])).toEqual(["z", "m", "a", "k", "b", "c"]);
      expect((await found(head.token))?.snapshots).toEqual(["z", "m", "a", "k", "b", "c"]);
    });

    testSnapshots("can be taken of an unmounted head, and are gone when destroyed", async () => {
      const head = await newSession();
      await writeFile(join(head.path, "a"), "1");
      await suite.storage.unmountHead(head, call);
      await suite.storage.seal(head, "s1", {}, call);
      await suite.storage.destroySnapshot({ token: head.token, name: "s1" }, call);
      await suite.storage.destroySnapshot({ token: head.token, name: "s1" }, call);
      expect(await suite.storage.listSnapshots(head.token, call)).toEqual([]);
    });

    testSnapshots("that something was cloned from stay", async () => {
      const head = await newSession();
      await suite.storage.seal(head, "s1", {}, call);
      const second = await cloneOf(head, "s1", 2);
      await expectReason(suite.storage.destroySnapshot({ token: head.token, name: "s1" }, call), "SNAPSHOT_IN_USE");
      await expectReason(suite.storage.destroyHead(head, call), "SNAPSHOT_IN_USE");
      expect(await readFile(join((await suite.storage.mountHead(head, call)).path, "hello"), "utf8")).toBe(
        "from the base",
      );
      await suite.storage.destroyHead(second, call);
      await suite.storage.destroySnapshot({ token: head.token, name: "s1" }, call);
      await suite.storage.destroyHead(head, call);
      expect((await found(head.token))?.heads).toEqual([]);
    });

    testSnapshots("count the bytes that only they hold", async () => {
      const head = await newSession();
      await writeNoise(join(head.path, "big"), 6 * MIB);
      await suite.storage.seal(head, "s1", {}, call);
      await rm(join(head.path, "big"));
      await suite.storage.seal(head, "s2", {}, call);
      await eventually(async () => {
        const [first, second] = await suite.storage.listSnapshots(head.token, call);
        expect(first?.usedBytes).toBeGreaterThan(5 * MIB);
        expect(first?.referencedBytes).toBeGreaterThan(5 * MIB);
        expect(second?.usedBytes).toBeLessThan(MIB);
      });
      expect(await suite.storage.usedBytes(head.token, call)).toBeGreaterThan(5 * MIB);
    });

    testSnapshots("that are not there are named so", async () => {
      const head = await newSession();
      await expectReason(cloneOf(head, "nothing", 2), "SNAPSHOT_NOT_FOUND");
      const origin: Origin = { kind: "snapshot", snapshot: { token: "nobody", name: "s" } };
      await expectReason(
        suite.storage.createSession({ token: randomToken(12), origin, marks: {} }, call),
        "SNAPSHOT_NOT_FOUND",
      );
      await expectReason(suite.storage.seal({ token: head.token, generation: 9 }, "s", {}, call), "SESSION_NOT_FOUND");
      await expectReason(suite.storage.seal({ token: "nobody", generation: 1 }, "s", {}, call), "SESSION_NOT_FOUND");
      await expectReason(suite.storage.listSnapshots("nobody", call), "SESSION_NOT_FOUND");
      await suite.storage.destroySnapshot({ token: "nobody", name: "s" }, call);
      for (const name of ["", "..", "a/b", "a@b", "-r", "a b", "x".repeat(65)]) {
        await expectReason(suite.storage.seal(head, name, {}, call), "INVALID_ARGUMENT");
      }
    });
  });

  describe("rollback and fork", () => {
    testSnapshots(
      "clone an old snapshot as the new head, and the old one is still there to go back to (D1)",
      async () => {
        const head = await newSession({ quotaBytes: 32 * MIB });
        await writeFile(join(head.path, "a"), "1");
        await suite.storage.seal(head, "t1", {}, call);
        await writeFile(join(head.path, "a"), "2");
        await suite.storage.seal(head, "undo", {}, call);
        const spec = {
          token: head.token,
          generation: 2,
          origin: { kind: "snapshot", snapshot: { token: head.token, name: "t1" } },
          refquotaBytes: head.refquotaBytes ?? 0,
          marks: { turn: "1" },
        } as const;
        const second = await suite.storage.createHead(spec, call);
        expect(second.refquotaBytes).toBe(head.refquotaBytes);
        expect(await suite.storage.createHead(spec, call)).toEqual(second);
        expect(await readFile(join(second.path, "a"), "utf8")).toBe("1");
        const third = await cloneOf(head, "undo", 3);
        expect(await readFile(join(third.path, "a"), "utf8")).toBe("2");
      },
    );

    testSnapshots("a fork starts from a snapshot of another session, which then stays", async () => {
      const parent = await newSession();
      await writeFile(join(parent.path, "a"), "1");
      await suite.storage.seal(parent, "t1", {}, call);
      const origin: Origin = { kind: "snapshot", snapshot: { token: parent.token, name: "t1" } };
      const child = await suite.storage.createSession(
        { token: randomToken(12), origin, quotaBytes: 16 * MIB, marks: {} },
        call,
      );
      await writeFile(join(child.path, "a"), "child");
      expect(await readFile(join(parent.path, "a"), "utf8")).toBe("1");
      await expectReason(suite.storage.destroySession(parent.token, call), "SNAPSHOT_IN_USE");
      expect(await readFile(join(parent.path, "a"), "utf8")).toBe("1");
      await suite.storage.destroySession(child.token, call);
      await suite.storage.destroySession(parent.token, call);
      expect(await found(parent.token)).toBeUndefined();
    });
  });

  describe("destroying a session", () => {
    testSnapshots("takes heads that were cloned from one another", async () => {
      const first = await newSession();
      await suite.storage.seal(first, "s", {}, call);
      const second = await cloneOf(first, "s", 2);
      await suite.storage.seal(second, "t", {}, call);
      const third = await cloneOf(second, "t", 3);
      await suite.storage.seal(third, "u", {}, call);
      const fourth = await cloneOf(first, "s", 4);
      await suite.storage.unmountHead(second, call);
      await writeFile(join(fourth.path, "x"), "x");
      await suite.storage.destroySession(first.token, call);
      await suite.storage.destroySession(first.token, call);
      expect(await found(first.token)).toBeUndefined();
      await expectReason(suite.storage.mountHead(fourth, call), "SESSION_NOT_FOUND");
    });

    test("twice at once ends well for both (D2), and leaves others alone", async () => {
      const base = await newBase();
      const [gone, stays] = [await newSession({ base }), await newSession({ base })];
      await Promise.all([
        suite.storage.destroySession(gone.token, call),
        suite.storage.destroySession(gone.token, call),
      ]);
      expect(await found(gone.token)).toBeUndefined();
      expect(await readFile(join(stays.path, "hello"), "utf8")).toBe("from the base");
      await expect(lstat(gone.path)).rejects.toMatchObject({ code: "ENOENT" });
    });

    test("frees its token", async () => {
      const head = await newSession();
      await writeFile(join(head.path, "old"), "x");
      await suite.storage.destroySession(head.token, call);
      const origin: Origin = { kind: "base", base: await newBase() };
      const again = await suite.storage.createSession({ token: head.token, origin, marks: {} }, call);
      expect(await readdir(again.path)).toEqual(["hello"]);
    });
  });
}
