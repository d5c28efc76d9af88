import { describe, expect } from "@jest/globals";
import { mapConcurrent } from "@turnbox/core";
import { call, expectReason, listAll, type SuiteFixture, test } from "./suite-fixture.suite.ts";

export function listSuite(suite: SuiteFixture): void {
  const fill = async (names: readonly string[]): Promise<string> => {
    const folder = suite.folder();
    await mapConcurrent(names, 8, (name) => suite.store.put(`${folder}/${name}`, Buffer.from(name), {}, call));
    return folder;
  };
  const namesBelow = async (folder: string, prefix: string, limit?: number): Promise<readonly string[]> =>
    (await listAll(suite.store, `${folder}/${prefix}`, limit)).objects.map(({ key }) => key.slice(folder.length + 1));

  describe("lists", () => {
    test("lists in the order of the bytes of keys, folders among them", async () => {
      const names = ["a-b", "a.b", "a/b", "a/b-c", "a0", "aB", "a_", "b/c/d", "b/c-d", "Z", "z/y/x"];
      const folder = await fill(names);
      const sorted = names.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
      expect(await namesBelow(folder, "")).toEqual(sorted);
      for (const limit of [1, 2, 3]) expect(await namesBelow(folder, "", limit)).toEqual(sorted);
    });

    test("lists what begins with a prefix, which may end within a name", async () => {
      const folder = await fill(["ab/c", "abc", "abd/e", "b"]);
      expect(await namesBelow(folder, "ab")).toEqual(["ab/c", "abc", "abd/e"]);
      expect(await namesBelow(folder, "ab/")).toEqual(["ab/c"]);
      expect(await namesBelow(folder, "abd/e")).toEqual(["abd/e"]);
      expect(await namesBelow(folder, "c")).toEqual([]);
      expect(await listAll(suite.store, `${folder}-none/`)).toEqual({ objects: [], pages: 1 });
    });

    test("lists in pages, each of at most as many as are wanted, without a gap or one twice", async () => {
      const names = Array.from({ length: 25 }, (_, index) => `${index % 5}/${String(index).padStart(3, "0")}`);
      const folder = await fill(names);
      const { objects, pages } = await listAll(suite.store, `${folder}/`, 10);
      expect(objects.map(({ key }) => key)).toEqual(names.map((name) => `${folder}/${name}`).toSorted());
      expect(pages).toBe(3);
      const first = await suite.store.list(`${folder}/`, { limit: 10 }, call);
      expect(first.objects).toHaveLength(10);
      expect(first.more).toBe(true);
    });

    test("goes on behind a key, whether that is there or not", async () => {
      const folder = await fill(["a", "b/c", "d"]);
      const behind = async (name: string): Promise<readonly string[]> =>
        (await suite.store.list(`${folder}/`, { after: `${folder}/${name}` }, call)).objects.map(({ key }) => key);
      expect(await behind("a")).toEqual([`${folder}/b/c`, `${folder}/d`]);
      expect(await behind("b")).toEqual([`${folder}/b/c`, `${folder}/d`]);
      expect(await behind("b/c")).toEqual([`${folder}/d`]);
      expect(await behind("c")).toEqual([`${folder}/d`]);
      expect(await behind("d")).toEqual([]);
    });

    test("says of each object what stat says", async () => {
      const folder = await fill(["a", "b/c"]);
      const { objects } = await listAll(suite.store, `${folder}/`);
      expect(objects).toHaveLength(2);
      for (const info of objects) {
        const { modifiedAtMs, ...rest } = (await suite.store.stat(info.key, call))!;
        expect(info).toMatchObject(rest);
        // S3 says whole seconds in one place and fractions in the other.
        expect(Math.abs(info.modifiedAtMs - modifiedAtMs)).toBeLessThanOrEqual(1000);
      }
    });

    test("no longer lists what was removed", async () => {
      const folder = await fill(["a", "b/c", "b/d"]);
      await suite.store.delete([`${folder}/b/c`, `${folder}/a`], call);
      expect(await namesBelow(folder, "")).toEqual(["b/d"]);
      await suite.store.delete([`${folder}/b/d`], call);
      expect(await namesBelow(folder, "")).toEqual([]);
    });

    test("refuses arguments by their rule, and names the field", async () => {
      const { store } = suite;
      const fieldOf = async (attempt: Promise<unknown>): Promise<string | undefined> =>
        (await expectReason(attempt, "INVALID_ARGUMENT")).metadata["field"];
      for (const prefix of ["/", "/a", "a//", "../", "a b"]) {
        expect(await fieldOf(store.list(prefix, {}, call))).toBe("prefix");
      }
      for (const limit of [0, -1, 1.5, 1001]) expect(await fieldOf(store.list("", { limit }, call))).toBe("limit");
      expect(await fieldOf(store.list("", { after: "a/" }, call))).toBe("after");
    });
  });
}
