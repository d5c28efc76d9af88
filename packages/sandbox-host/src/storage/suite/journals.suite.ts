import { lstat, readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import { describe, expect } from "@jest/globals";
import { call, eventually, expectReason, MIB, type SuiteFixture, test, writeNoise } from "./suite-fixture.suite.ts";

/** By number: Node has no name for it. */
const EDQUOT = { errno: -constants.errno.EDQUOT };

export function journalsSuite(suite: SuiteFixture): void {
  const { newSession } = suite;
  const QUOTA = { quotaBytes: 8 * MIB };

  describe("journals", () => {
    test("have a directory of the session's own, the same one again, also after a restart", async () => {
      const [{ token, path: files }, other] = [await newSession(), await newSession()];
      const journals = await suite.storage.openJournals({ token, ...QUOTA }, call);
      const { path } = journals;
      await writeFile(join(path, "output"), "words");
      expect(await suite.storage.openJournals({ token, ...QUOTA }, call)).toEqual(journals);
      const elsewhere = await suite.storage.openJournals({ token: other.token, ...QUOTA }, call);
      expect(await readdir(elsewhere.path)).toEqual([]);
      expect((await readdir(files)).includes("output")).toBe(false);
      const again = suite.restarted();
      await again.open(call);
      expect(await again.openJournals({ token, ...QUOTA }, call)).toEqual(journals);
      expect(await readFile(join(path, "output"), "utf8")).toBe("words");
    });

    test("take no more than their bound, and room again once something is dropped", async () => {
      const { token } = await newSession();
      const { path } = await suite.storage.openJournals({ token, ...QUOTA }, call);
      const flood = writeNoise(join(path, "output"), 16 * MIB);
      await (suite.options.quota === "enforced" ? expect(flood).rejects.toMatchObject(EDQUOT) : flood);
      const mostBytes = suite.options.quota === "enforced" ? 8 * MIB : 16 * MIB;
      expect((await stat(join(path, "output"))).size).toBeLessThanOrEqual(mostBytes);
      // OpenZFS refuses this too while what was written last is not yet accounted for.
      await eventually(() => truncate(join(path, "output"), 0));
      await eventually(() => writeNoise(join(path, "output"), 4 * MIB));
    });

    test("go with their session, and no others", async () => {
      const [gone, kept] = [await newSession(), await newSession()];
      const paths: string[] = [];
      for (const { token } of [gone, kept]) {
        const { path } = await suite.storage.openJournals({ token, ...QUOTA }, call);
        await writeFile(join(path, "output"), token);
        paths.push(path);
      }
      await suite.storage.destroySession(gone.token, call);
      await expect(lstat(paths[0] ?? "")).rejects.toMatchObject({ code: "ENOENT" });
      expect(await readFile(join(paths[1] ?? "", "output"), "utf8")).toBe(kept.token);
      await expectReason(suite.storage.openJournals({ token: gone.token, ...QUOTA }, call), "SESSION_NOT_FOUND");
    });

    suite.testSnapshots("go when their session is shrunk, since a husk writes nothing", async () => {
      const head = await newSession();
      const { path } = await suite.storage.openJournals({ token: head.token, ...QUOTA }, call);
      await suite.storage.seal(head, `j-${head.token}`, {}, call);
      await suite.forkOf(head, `j-${head.token}`);
      await suite.storage.shrinkSession(head.token, call);
      await expect(lstat(path)).rejects.toMatchObject({ code: "ENOENT" });
    });

    test("of a session that does not exist are refused", async () => {
      await expectReason(suite.storage.openJournals({ token: "nobody", ...QUOTA }, call), "SESSION_NOT_FOUND");
    });
  });
}
