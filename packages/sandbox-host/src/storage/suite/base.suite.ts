import { chmod, lstat, mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "@jest/globals";
import { call, expectReason, hexDigest, test, writeFiles, type SuiteFixture } from "./suite-fixture.suite.ts";

export function baseSuite(suite: SuiteFixture): void {
  const { newBase, newSession } = suite;

  describe("bases", () => {
    test("hold what was filled in, with modes and symbolic links", async () => {
      const base = { name: "modes", digest: hexDigest() };
      await suite.storage.createBase(
        base,
        async (directory) => {
          await mkdir(join(directory, "bin"), { mode: 0o750 });
          await writeFile(join(directory, "bin/run"), "#!/bin/sh\n");
          await chmod(join(directory, "bin/run"), 0o755);
          await symlink("bin/run", join(directory, "link"));
          await symlink("/no/such/place", join(directory, "dangling"));
        },
        call,
      );
      const head = await newSession({ base });
      expect((await stat(join(head.path, "bin/run"))).mode & 0o777).toBe(0o755);
      expect((await stat(join(head.path, "bin"))).mode & 0o777).toBe(0o750);
      expect(await readlink(join(head.path, "link"))).toBe("bin/run");
      expect((await lstat(join(head.path, "dangling"))).isSymbolicLink()).toBe(true);
      expect(await readlink(join(head.path, "dangling"))).toBe("/no/such/place");
    });

    test("that exist are answered without filling", async () => {
      const base = await newBase();
      const first = (await suite.storage.listBases(call)).find(({ digest }) => digest === base.digest);
      const again = await suite.storage.createBase(base, () => Promise.reject(new Error("filled twice")), call);
      expect(again).toEqual(first);
      expect(again.referencedBytes).toBeGreaterThan(0);
      expect(Math.abs(Date.now() - again.createdAtMs)).toBeLessThan(120_000);
    });

    test("are filled into an empty directory", async () => {
      let entries: readonly string[] | undefined;
      await suite.storage.createBase(
        { name: "empty", digest: hexDigest() },
        async (directory) => {
          entries = await readdir(directory);
        },
        call,
      );
      expect(entries).toEqual([]);
    });

    test("whose filling fails do not exist, and are made again", async () => {
      const base = { name: "half", digest: hexDigest() };
      const failing = suite.storage.createBase(
        base,
        async (directory) => {
          await writeFile(join(directory, "half"), "x");
          throw new Error("the archive ended early");
        },
        call,
      );
      await expect(failing).rejects.toThrow("the archive ended early");
      expect((await suite.storage.listBases(call)).some(({ digest }) => digest === base.digest)).toBe(false);
      await expectReason(newSession({ base }), "TEMPLATE_NOT_FOUND");
      await suite.storage.createBase(base, (directory) => writeFiles(directory, { whole: "y" }), call);
      expect(await readdir((await newSession({ base })).path)).toEqual(["whole"]);
    });

    test("made twice at once are filled once", async () => {
      const base = { name: "twice", digest: hexDigest() };
      let fills = 0;
      const fill = async (directory: string): Promise<void> => {
        fills += 1;
        await writeFiles(directory, { a: "1" });
      };
      const [one, two] = await Promise.all([
        suite.storage.createBase(base, fill, call),
        suite.storage.createBase(base, fill, call),
      ]);
      expect(one).toEqual(two);
      expect(fills).toBe(1);
    });

    test("are listed oldest first", async () => {
      const made = [await newBase(), await newBase(), await newBase()].map(({ digest }) => digest);
      const listed = (await suite.storage.listBases(call)).map(({ digest }) => digest);
      expect(listed.filter((digest) => made.includes(digest))).toEqual(made);
    });

    test("are not changed by what sessions write", async () => {
      const base = await newBase({ hello: "from the base" });
      const first = await newSession({ base });
      await writeFile(join(first.path, "hello"), "changed");
      await writeFile(join(first.path, "new"), "x");
      const second = await newSession({ base });
      expect(await readFile(join(second.path, "hello"), "utf8")).toBe("from the base");
      expect(await readdir(second.path)).toEqual(["hello"]);
    });

    test("stay while a session depends on them, and go after it", async () => {
      const base = await newBase();
      const head = await newSession({ base });
      await expectReason(suite.storage.destroyBase(base, call), "TEMPLATE_IN_USE");
      expect((await suite.storage.listBases(call)).some(({ digest }) => digest === base.digest)).toBe(true);
      expect(await readFile(join(head.path, "hello"), "utf8")).toBe("from the base");
      await suite.storage.destroySession(head.token, call);
      await suite.storage.destroyBase(base, call);
      await suite.storage.destroyBase(base, call);
      expect((await suite.storage.listBases(call)).some(({ digest }) => digest === base.digest)).toBe(false);
      await expectReason(newSession({ base }), "TEMPLATE_NOT_FOUND");
    });

    test("with names that are no names are refused", async () => {
      for (const wrong of ["", "..", "../up", "a/b", "-x", "A", "a b", "a@b", "x".repeat(64)]) {
        const base = { name: wrong, digest: "ab12" };
        await expectReason(
          suite.storage.createBase(base, () => Promise.resolve(), call),
          "INVALID_ARGUMENT",
        );
      }
      await expectReason(
        suite.storage.createBase({ name: "ok", digest: "../x" }, () => Promise.resolve(), call),
        "INVALID_ARGUMENT",
      );
    });
  });
}
