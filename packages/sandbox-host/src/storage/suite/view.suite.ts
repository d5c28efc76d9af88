import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "@jest/globals";
import { call, expectReason, type SuiteFixture } from "./suite-fixture.suite.ts";

/** Looking at files without a head. */
export function viewSuite(suite: SuiteFixture): void {
  const { newSession, cloneOf, found, testSnapshots } = suite;

  describe("views", () => {
    testSnapshots("of a snapshot show its files, however the head goes on", async () => {
      const head = await newSession();
      await writeFile(join(head.path, "a"), "1");
      await suite.storage.seal(head, "s1", {}, call);
      await writeFile(join(head.path, "a"), "2");
      const snapshot = { token: head.token, name: "s1" };
      await using view = await suite.storage.openView({ kind: "snapshot", snapshot }, call);
      expect(view.snapshot).toEqual(snapshot);
      expect(await readFile(join(view.path, "a"), "utf8")).toBe("1");
      if (suite.options.mounts === "real")
        await expect(writeFile(join(view.path, "a"), "3")).rejects.toMatchObject({ code: "EROFS" });
    });

    testSnapshots("of a head show it as it was when they were opened", async () => {
      const head = await newSession();
      await writeFile(join(head.path, "a"), "1");
      await suite.storage.seal(head, "s1", {}, call);
      await writeFile(join(head.path, "a"), "2");
      await using view = await suite.storage.openView({ kind: "head", head }, call);
      await writeFile(join(head.path, "a"), "3");
      expect(await readFile(join(view.path, "a"), "utf8")).toBe("2");
      const since = { token: head.token, name: "s1" };
      expect(await suite.storage.isUnchanged(view.snapshot, since, call)).toBe(false);
    });

    testSnapshots("are in no listing, and leave nothing when they are closed", async () => {
      const head = await newSession();
      await suite.storage.seal(head, "s1", {}, call);
      const sessions = (await suite.storage.inventory(call)).length;
      const view = await suite.storage.openView({ kind: "head", head }, call);
      expect((await suite.storage.listSnapshots(head.token, call)).map(({ name }) => name)).toEqual(["s1"]);
      expect((await found(head.token))?.snapshots).toEqual(["s1"]);
      expect(await suite.storage.inventory(call)).toHaveLength(sessions);
      await view[Symbol.asyncDispose]();
      await view[Symbol.asyncDispose]();
      await expectReason(
        suite.storage.openView({ kind: "snapshot", snapshot: view.snapshot }, call),
        "SNAPSHOT_NOT_FOUND",
      );
      await suite.storage.destroySession(head.token, call);
      expect(await found(head.token)).toBeUndefined();
    });

    testSnapshots("keep what they stand on", async () => {
      const head = await newSession();
      await suite.storage.seal(head, "s1", {}, call);
      const snapshot = { token: head.token, name: "s1" };
      {
        await using view = await suite.storage.openView({ kind: "snapshot", snapshot }, call);
        await expectReason(suite.storage.destroySnapshot(snapshot, call), "SNAPSHOT_IN_USE");
        await expectReason(suite.storage.destroyHead(head, call), "SNAPSHOT_IN_USE");
        await expectReason(suite.storage.destroySession(head.token, call), "SNAPSHOT_IN_USE");
        await suite.storage.shrinkSession(head.token, call);
        expect((await found(head.token))?.snapshots).toEqual(["s1"]);
        expect(await readdir(view.path)).toEqual(["hello"]);
      }
      await suite.storage.destroySession(head.token, call);
    });

    testSnapshots("stay what they are when heads are collected under them", async () => {
      const first = await newSession();
      await writeFile(join(first.path, "a"), "1");
      await suite.storage.seal(first, "s1", {}, call);
      const second = await cloneOf(first, "s1", 2);
      const snapshot = { token: first.token, name: "s1" };
      {
        await using view = await suite.storage.openView({ kind: "snapshot", snapshot }, call);
        await using now = await suite.storage.openView({ kind: "head", head: second }, call);
        expect(await suite.storage.collectHeads(second, call)).toHaveLength(1);
        await suite.storage.seal(second, "s2", {}, call);
        const third = await cloneOf(second, "s2", 3);
        expect(await suite.storage.collectHeads(third, call)).toHaveLength(1);
        for (const { path } of [view, now]) expect(await readFile(join(path, "a"), "utf8")).toBe("1");
      }
      await suite.storage.destroySession(first.token, call);
      expect(await found(first.token)).toBeUndefined();
    });

    testSnapshots("of what is not there are refused, and names of theirs are not for others", async () => {
      const head = await newSession();
      const snapshot = { token: head.token, name: "nothing" };
      await expectReason(suite.storage.openView({ kind: "snapshot", snapshot }, call), "SNAPSHOT_NOT_FOUND");
      const absent = { token: head.token, generation: 9 };
      await expectReason(suite.storage.openView({ kind: "head", head: absent }, call), "SESSION_NOT_FOUND");
      await expectReason(suite.storage.seal(head, "v-0123456789abcdef", {}, call), "INVALID_ARGUMENT");
    });

    testSnapshots("that a service left behind are gone when the next one opens; live ones are not", async () => {
      const head = await newSession();
      const left = await suite.storage.openView({ kind: "head", head }, call);
      await suite.storage.open(call);
      expect(await readdir(left.path)).toEqual(["hello"]);
      const next = suite.restarted();
      await next.open(call);
      await expectReason(next.openView({ kind: "snapshot", snapshot: left.snapshot }, call), "SNAPSHOT_NOT_FOUND");
      await next.destroySession(head.token, call);
      await left[Symbol.asyncDispose]();
      expect(await found(head.token)).toBeUndefined();
    });

    testSnapshots("are many at once, and one too many waits until another is closed", async () => {
      const head = await newSession();
      await suite.storage.seal(head, "s1", {}, call);
      const point = { kind: "snapshot", snapshot: { token: head.token, name: "s1" } } as const;
      const views = await Promise.all(Array.from({ length: 16 }, () => suite.storage.openView(point, call)));
      expect(new Set(views.map(({ path }) => path)).size).toBe(suite.storage.kind === "fake" ? 1 : 16);
      await expectReason(suite.storage.openView(point, { signal: AbortSignal.timeout(500) }), "DEADLINE_EXCEEDED");
      const waiting = suite.storage.openView(point, call);
      await views[0]?.[Symbol.asyncDispose]();
      await using last = await waiting;
      expect(await readdir(last.path)).toEqual(["hello"]);
      for (const view of views) await view[Symbol.asyncDispose]();
    });
  });
}
