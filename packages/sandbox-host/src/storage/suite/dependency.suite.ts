import { lstat, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "@jest/globals";
import type { Head } from "../storage.ts";
import { call, expectReason, test, type SuiteFixture } from "./suite-fixture.suite.ts";

/** What may go when other things were cloned from it. */
export function dependencySuite(suite: SuiteFixture): void {
  const { newSession, forkOf, cloneOf, found, testSnapshots } = suite;
  const seal = async (head: Head, name: string): Promise<void> => {
    await writeFile(join(head.path, "at"), name);
    await suite.storage.seal(head, name, { name }, call);
  };
  const generations = async (token: string): Promise<readonly number[]> =>
    ((await found(token))?.heads ?? []).map(({ generation }) => generation).sort((left, right) => left - right);
  const snapshots = async (token: string): Promise<readonly string[]> =>
    (await suite.storage.listSnapshots(token, call)).map(({ generation, name }) => `${generation}${name}`);
  const contentOf = async (head: Head): Promise<string> =>
    await readFile(join((await suite.storage.mountHead(head, call)).path, "at"), "utf8");

  testSnapshots("the example of the port does what it says", async () => {
    const { storage } = suite;
    const first = await newSession();
    const { token } = first;
    await seal(first, "s1");
    await seal(first, "s2");
    const second = await cloneOf(first, "s1", 2);
    await storage.unmountHead(first, call);
    expect(await contentOf(second)).toBe("s1");
    const fork = await forkOf(first, "s1");
    await expectReason(storage.destroySession(token, call), "SNAPSHOT_IN_USE");
    await storage.destroySnapshot({ token, name: "s2" }, call);
    expect(await storage.collectHeads(second, call)).toEqual([{ token, generation: 1 }]);
    expect(await snapshots(token)).toEqual(["2s1"]);
    await storage.shrinkSession(token, call);
    await storage.destroySession(fork.token, call);
    await storage.destroySession(token, call);
    expect(await found(token)).toBeUndefined();
  });

  describe("collecting heads", () => {
    testSnapshots("after rollbacks leaves one head that holds all snapshots", async () => {
      const first = await newSession();
      await seal(first, "s1");
      const second = await cloneOf(first, "s1", 2);
      await seal(second, "s5");
      const third = await cloneOf(second, "s5", 3);
      await writeFile(join(third.path, "at"), "now");
      const { token } = first;
      expect(await suite.storage.collectHeads(third, call)).toEqual([
        { token, generation: 1 },
        { token, generation: 2 },
      ]);
      expect(await suite.storage.collectHeads(third, call)).toEqual([]);
      expect(await generations(token)).toEqual([3]);
      expect(await snapshots(token)).toEqual(["3s1", "3s5"]);
      expect((await suite.storage.listSnapshots(token, call)).map(({ marks }) => marks["name"])).toEqual(["s1", "s5"]);
      expect(await readFile(join(third.path, "at"), "utf8")).toBe("now");
      expect(await contentOf(await cloneOf(third, "s1", 4))).toBe("s1");
      await expect(lstat(first.path)).rejects.toMatchObject({ code: "ENOENT" });
      await suite.storage.destroySession(token, call);
      expect(await found(token)).toBeUndefined();
    });

    testSnapshots("keeps those that only they lead to, until retention has taken them", async () => {
      const first = await newSession();
      for (const name of ["s1", "s2", "undo"]) await seal(first, name);
      const second = await cloneOf(first, "s1", 2);
      expect(await suite.storage.collectHeads(second, call)).toEqual([]);
      for (const name of ["s2", "undo"]) await suite.storage.destroySnapshot({ token: first.token, name }, call);
      expect(await suite.storage.collectHeads(second, call)).toEqual([{ token: first.token, generation: 1 }]);
      expect(await snapshots(first.token)).toEqual(["2s1"]);
    });

    testSnapshots("ends a head without snapshots, and never the kept one", async () => {
      const first = await newSession();
      await seal(first, "s1");
      const tries = [await cloneOf(first, "s1", 2), await cloneOf(first, "s1", 3)];
      expect(await suite.storage.collectHeads(first, call)).toEqual(
        tries.map(({ token, generation }) => ({ token, generation })),
      );
      expect(await contentOf(first)).toBe("s1");
      expect(await snapshots(first.token)).toEqual(["1s1"]);
      await suite.storage.destroySnapshot({ token: first.token, name: "s1" }, call);
      expect(await suite.storage.collectHeads(first, call)).toEqual([]);
      await expectReason(suite.storage.collectHeads({ token: first.token, generation: 9 }, call), "SESSION_NOT_FOUND");
      expect(await generations(first.token)).toEqual([1]);
    });

    testSnapshots("leaves forks on what was moved and on what was not", async () => {
      const first = await newSession();
      await seal(first, "s1");
      await seal(first, "s2");
      const second = await cloneOf(first, "s2", 2);
      await seal(second, "s3");
      const early = await forkOf(first, "s1");
      const late = await forkOf(second, "s3");
      const third = await cloneOf(second, "s3", 3);
      expect((await suite.storage.collectHeads(third, call)).map(({ generation }) => generation)).toEqual([1, 2]);
      expect([await contentOf(early), await contentOf(late)]).toEqual(["s1", "s3"]);
      expect(await snapshots(first.token)).toEqual(["3s1", "3s2", "3s3"]);
      for (const name of ["s1", "s3"])
        await expectReason(suite.storage.destroySnapshot({ token: first.token, name }, call), "SNAPSHOT_IN_USE");
      // A later fork finds the snapshot on its new head.
      const another = await forkOf(first, "s2");
      expect(await contentOf(another)).toBe("s2");
      for (const { token } of [early, late, another, first]) await suite.storage.destroySession(token, call);
      expect(await found(first.token)).toBeUndefined();
    });

    testSnapshots("never moves anything into another session", async () => {
      const parent = await newSession();
      await seal(parent, "s1");
      const second = await cloneOf(parent, "s1", 2);
      await seal(second, "s2");
      const fork = await forkOf(second, "s2");
      await suite.storage.collectHeads(second, call);
      await suite.storage.collectHeads(fork, call);
      expect(await snapshots(parent.token)).toEqual(["2s1", "2s2"]);
      expect(await snapshots(fork.token)).toEqual([]);
    });

    testSnapshots("lets the same creation be asked for again", async () => {
      const first = await newSession();
      await seal(first, "s1");
      const second = await cloneOf(first, "s1", 2);
      await suite.storage.collectHeads(second, call);
      expect(await cloneOf(first, "s1", 2)).toEqual(second);
    });
  });

  describe("a parent and its forks", () => {
    testSnapshots("destroyed in this order leave what the forks need, and then nothing", async () => {
      const parent = await newSession({ marks: { a: "1" } });
      for (const name of ["s1", "s2", "s3"]) await seal(parent, name);
      const second = await cloneOf(parent, "s2", 2);
      await seal(second, "t1");
      const child = await forkOf(parent, "s2");
      await expectReason(suite.storage.destroySession(parent.token, call), "SNAPSHOT_IN_USE");
      await suite.storage.shrinkSession(parent.token, call);
      await suite.storage.shrinkSession(parent.token, call);
      expect((await found(parent.token))?.snapshots).toEqual(["s2"]);
      expect((await found(parent.token))?.heads).toMatchObject([{ mounted: "no" }]);
      await expectReason(suite.storage.destroySession(parent.token, call), "SNAPSHOT_IN_USE");
      expect(await contentOf(child)).toBe("s2");
      await suite.storage.destroySession(child.token, call);
      await suite.storage.destroySession(parent.token, call);
      expect(await found(parent.token)).toBeUndefined();
    });

    testSnapshots("shrink to the last head of a line that forks hang on", async () => {
      const first = await newSession();
      await seal(first, "s1");
      const second = await cloneOf(first, "s1", 2);
      for (const name of ["s2", "s3"]) await seal(second, name);
      const third = await cloneOf(second, "s2", 3);
      await seal(third, "s4");
      const forks = [await forkOf(second, "s3"), await forkOf(third, "s4")];
      await suite.storage.shrinkSession(first.token, call);
      // The two branches part at `s2`.
      expect((await found(first.token))?.snapshots).toEqual(["s2", "s3", "s4"]);
      expect(await generations(first.token)).toEqual([2, 3]);
      expect(await Promise.all(forks.map(contentOf))).toEqual(["s3", "s4"]);
      await suite.storage.destroySession(forks[0]?.token ?? "", call);
      await suite.storage.shrinkSession(first.token, call);
      expect((await found(first.token))?.snapshots).toEqual(["s4"]);
      expect(await generations(first.token)).toEqual([3]);
      await suite.storage.destroySession(forks[1]?.token ?? "", call);
      await suite.storage.shrinkSession(first.token, call);
      expect(await found(first.token)).toBeUndefined();
    });

    testSnapshots("destroyed the other way round need no shrinking, also where forks have forks", async () => {
      const parent = await newSession();
      await seal(parent, "s1");
      const child = await forkOf(parent, "s1");
      await seal(child, "c1");
      const grandchild = await forkOf(child, "c1");
      await expectReason(suite.storage.destroySession(child.token, call), "SNAPSHOT_IN_USE");
      for (const { token } of [grandchild, child, parent]) {
        await suite.storage.destroySession(token, call);
        expect(await found(token)).toBeUndefined();
      }
    });
  });

  describe("shrinking", () => {
    test("a session that nothing depends on ends it, and one that is not there is gone", async () => {
      const { token } = await newSession();
      await suite.storage.shrinkSession(token, call);
      expect(await found(token)).toBeUndefined();
      await suite.storage.shrinkSession(token, call);
    });
  });

  describe("marks of a session", () => {
    test("are set one by one, and the others stay", async () => {
      const { token } = await newSession({ marks: { a: "1", b: "2" } });
      await suite.storage.markSession(token, { b: "", c: "tab\tand\nline" }, call);
      await suite.storage.markSession(token, {}, call);
      expect((await found(token))?.marks).toEqual({ a: "1", b: "", c: "tab\tand\nline" });
      await expectReason(suite.storage.markSession("nobody", { a: "1" }, call), "SESSION_NOT_FOUND");
      await expectReason(suite.storage.markSession(token, { "A b": "1" }, call), "INVALID_ARGUMENT");
    });
  });
}
