import { lstat, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "@jest/globals";
import type { BaseRef, Head } from "../storage.ts";
import { call, expectReason, type StorageHarness, test, writeFiles } from "./suite-fixture.suite.ts";

/** The end of a whole storage, each time on one of its own. */
export function endSuite(create: () => Promise<StorageHarness>): void {
  const base: BaseRef = { name: "mini", digest: "ab" };
  const fill = async ({ storage }: StorageHarness, hello: string): Promise<Head> => {
    await storage.createBase(base, (directory) => writeFiles(directory, { hello }), call);
    return await storage.createSession({ token: "t1", origin: { kind: "base", base }, marks: {} }, call);
  };

  describe("destroying all", () => {
    test("leaves nothing, closes the storage, and is done again without harm", async () => {
      await using harness = await create();
      const head = await fill(harness, "old");
      await harness.storage.destroyAll(call);
      await expect(lstat(head.path)).rejects.toMatchObject({ code: "ENOENT" });
      await expectReason(harness.storage.inventory(call), "STORAGE_UNAVAILABLE");
      await harness.storage.destroyAll(call);
    });

    test("needs no open, and what is opened after it is new", async () => {
      await using harness = await create();
      await writeFile(join((await fill(harness, "old")).path, "work"), "x");
      const other = harness.restarted();
      await other.destroyAll(call);
      await other.open(call);
      expect(await other.inventory(call)).toEqual([]);
      expect(await other.listBases(call)).toEqual([]);
      const again = await fill({ ...harness, storage: other }, "new");
      expect(await readFile(join(again.path, "hello"), "utf8")).toBe("new");
    });
  });
}
