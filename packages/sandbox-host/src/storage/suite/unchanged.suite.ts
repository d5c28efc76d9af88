import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, lstat, mkdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "@jest/globals";
import type { Head } from "../storage.ts";
import { MMAP_WRITE } from "./mmap-write.suite.ts";
import { call, expectReason, MIB, type SuiteFixture, writeNoise } from "./suite-fixture.suite.ts";

/** Whether something was written between two snapshots. */
export function unchangedSuite(suite: SuiteFixture): void {
  const { newSession, forkOf, cloneOf, testSnapshots } = suite;
  const seal = async (head: Head, name: string): Promise<void> => {
    await suite.storage.seal(head, name, {}, call);
  };
  const isUnchanged = (head: Head, name: string, since: string): Promise<boolean> =>
    suite.storage.isUnchanged({ token: head.token, name }, { token: head.token, name: since }, call);

  /** Whether a snapshot taken after the work differs from the one before it. */
  const seen = async (head: Head, what: string, work: () => Promise<unknown>): Promise<boolean> => {
    await seal(head, `before_${what}`);
    await work();
    await seal(head, `after_${what}`);
    return !(await isUnchanged(head, `after_${what}`, `before_${what}`));
  };

  describe("unchanged", () => {
    testSnapshots("is true as long as files are only read", async () => {
      const head = await newSession();
      const file = join(head.path, "hello");
      expect(await seen(head, "nothing", () => Promise.resolve())).toBe(false);
      expect(await seen(head, "reading", () => Promise.all([readFile(file), lstat(file)]))).toBe(false);
      expect(await isUnchanged(head, "after_reading", "before_nothing")).toBe(true);
      expect(await isUnchanged(head, "after_reading", "after_reading")).toBe(true);
    });

    testSnapshots("is false after any change, however small", async () => {
      const head = await newSession();
      const at = (name: string): string => join(head.path, name);
      const passing = async (): Promise<void> => {
        await writeFile(at("passing"), "x");
        await rm(at("passing"));
      };
      expect(await seen(head, "chmod", () => chmod(at("hello"), 0o600))).toBe(true);
      expect(await seen(head, "touch", () => utimes(at("hello"), 1, 1))).toBe(true);
      expect(await seen(head, "create_and_remove", passing)).toBe(true);
      expect(await seen(head, "directory", () => mkdir(at("directory")))).toBe(true);
      expect(await seen(head, "same_content", () => writeFile(at("hello"), "from the base"))).toBe(true);
      expect(await seen(head, "removal", () => rm(at("hello")))).toBe(true);
      expect(await isUnchanged(head, "after_removal", "before_chmod")).toBe(false);
    });

    testSnapshots("is false after a write to mapped memory that nothing has flushed", async () => {
      const program = join((await newSession()).path, "mmap-write");
      await writeFile(program, MMAP_WRITE, { mode: 0o755 });
      const head = await newSession();
      await writeFile(join(head.path, "page"), Buffer.alloc(4096));
      const map = async (): Promise<void> => {
        const child = spawn(program, [join(head.path, "page")], { stdio: "ignore" });
        expect((await once(child, "exit"))[0]).toBe(0);
      };
      expect(await seen(head, "mapping", map)).toBe(true);
    });

    testSnapshots("does not take what a later snapshot holds as well for nothing", async () => {
      const head = await newSession();
      await seal(head, "s1");
      await writeNoise(join(head.path, "big"), 4 * MIB);
      await seal(head, "s2");
      await seal(head, "s3");
      // `s2` alone holds no bytes: `s3` has them all.
      expect(await isUnchanged(head, "s2", "s1")).toBe(false);
      expect(await isUnchanged(head, "s3", "s2")).toBe(true);
      expect(await isUnchanged(head, "s3", "s1")).toBe(false);
    });

    testSnapshots("looks from the first snapshot of a clone back to its origin", async () => {
      const first = await newSession();
      await seal(first, "s1");
      await seal(first, "s2");
      const second = await cloneOf(first, "s2", 2);
      await seal(second, "s3");
      expect(await isUnchanged(second, "s3", "s2")).toBe(true);
      expect(await isUnchanged(second, "s3", "s1")).toBe(true);
      await writeFile(join(second.path, "new"), "x");
      await seal(second, "s4");
      expect(await isUnchanged(second, "s4", "s2")).toBe(false);
      await suite.storage.collectHeads(second, call);
      expect(await isUnchanged(second, "s3", "s1")).toBe(true);
      expect(await isUnchanged(second, "s4", "s1")).toBe(false);
      const fork = await forkOf(second, "s4");
      await seal(fork, "f1");
      const since = { token: second.token, name: "s4" };
      expect(await suite.storage.isUnchanged({ token: fork.token, name: "f1" }, since, call)).toBe(true);
    });

    testSnapshots("is false where one did not come before the other, and nothing where one is not there", async () => {
      const first = await newSession();
      await seal(first, "s1");
      const second = await cloneOf(first, "s1", 2);
      await seal(first, "s2");
      await seal(second, "s3");
      expect(await isUnchanged(first, "s3", "s2")).toBe(false);
      expect(await isUnchanged(first, "s1", "s2")).toBe(false);
      await expectReason(isUnchanged(first, "s1", "nothing"), "SNAPSHOT_NOT_FOUND");
      await expectReason(isUnchanged(first, "nothing", "s1"), "SNAPSHOT_NOT_FOUND");
    });
  });

  describe("changed paths", () => {
    testSnapshots("are at least those that differ, or unknown", async () => {
      const head = await newSession();
      await seal(head, "s1");
      await mkdir(join(head.path, "a b"));
      await writeFile(join(head.path, "a b", "ä\\"), "x");
      await chmod(join(head.path, "hello"), 0o600);
      await seal(head, "s2");
      const from = { token: head.token, name: "s1" };
      const paths = await suite.storage.changedPaths(from, { token: head.token, name: "s2" }, call);
      if (paths !== null) expect(paths).toEqual(expect.arrayContaining(["/a b", "/a b/ä\\", "/hello"]));
      expect([suite.storage.kind, paths === null]).not.toEqual(["fake", false]);
    });
  });
}
