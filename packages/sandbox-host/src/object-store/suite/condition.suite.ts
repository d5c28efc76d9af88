import { describe, expect } from "@jest/globals";
import type { ObjectStore, PutCondition } from "../object-store.ts";
import { call, expectReason, readText, type SuiteFixture, test } from "./suite-fixture.suite.ts";

const WRITERS = 8;
const ROUNDS = 10;

export function conditionSuite(suite: SuiteFixture): void {
  describe("conditions", () => {
    const put = async (store: ObjectStore, key: string, text: string, condition: PutCondition): Promise<string> =>
      (await store.put(key, Buffer.from(text), { condition }, call)).etag;

    test("puts an object only if there is none", async () => {
      const { store } = suite;
      const key = `${suite.folder()}/a`;
      await put(store, key, "first", { kind: "absent" });
      await expectReason(put(store, key, "second", { kind: "absent" }), "OBJECT_CHANGED");
      await expectReason(put(store, key, "first", { kind: "absent" }), "OBJECT_CHANGED");
      expect(await readText(store, key)).toBe("first");
    });

    test("puts an object only if it is the one that was read, in a chain of changes", async () => {
      const { store } = suite;
      const key = `${suite.folder()}/pointer`;
      const first = await put(store, key, "1", { kind: "absent" });
      const second = await put(store, key, "2", { kind: "matches", etag: first });
      await expectReason(put(store, key, "3", { kind: "matches", etag: first }), "OBJECT_CHANGED");
      expect(await readText(store, key)).toBe("2");
      const { body, etag } = await store.get(key, {}, call);
      body.destroy();
      expect(etag).toBe(second);
      await put(store, key, "3", { kind: "matches", etag });
      expect(await readText(store, key)).toBe("3");
    });

    test("does not put an object that is to match where there is none", async () => {
      const { store } = suite;
      const folder = suite.folder();
      const etag = await put(store, `${folder}/other`, "x", { kind: "any" });
      await expectReason(put(store, `${folder}/never`, "x", { kind: "matches", etag }), "OBJECT_CHANGED");
      await store.delete([`${folder}/other`], call);
      await expectReason(put(store, `${folder}/other`, "x", { kind: "matches", etag }), "OBJECT_CHANGED");
      expect(await store.stat(`${folder}/never`, call)).toBeUndefined();
    });

    test("refuses an etag that none can be", async () => {
      const { store } = suite;
      for (const etag of ["", "a b", "a\r\nx-amz-acl: public-read"]) {
        const refused = await expectReason(put(store, "a", "x", { kind: "matches", etag }), "INVALID_ARGUMENT");
        expect(refused.metadata["field"]).toBe("condition.etag");
      }
    });

    test("lets one of several writers win that put an absent object at once, also one with equal content", async () => {
      const stores = [suite.store, await suite.harness.other()];
      for (let round = 0; round < ROUNDS; round += 1) {
        const key = `${suite.folder()}/a`;
        const texts = Array.from({ length: WRITERS }, (_, index) => (round % 2 === 0 ? `writer ${index}` : "equal"));
        const ends = await Promise.allSettled(
          texts.map((text, index) => put(stores[index % 2]!, key, text, { kind: "absent" })),
        );
        expect(await winnerOf(ends, texts)).toBe(await readText(suite.store, key));
      }
      await stores[1]![Symbol.asyncDispose]();
    });

    test("lets one of several writers win that replace what they all have read", async () => {
      const stores = [suite.store, await suite.harness.other()];
      const key = `${suite.folder()}/a`;
      let etag = await put(suite.store, key, "begin", { kind: "absent" });
      for (let round = 0; round < ROUNDS; round += 1) {
        const texts = Array.from({ length: WRITERS }, (_, index) => `round ${round}, writer ${index}`);
        const ends = await Promise.allSettled(
          texts.map((text, index) => put(stores[index % 2]!, key, text, { kind: "matches", etag })),
        );
        expect(await winnerOf(ends, texts)).toBe(await readText(suite.store, key));
        const won = ends.find((end) => end.status === "fulfilled");
        expect(won).not.toMatchObject({ value: etag });
        etag = won?.value ?? "";
      }
      await stores[1]![Symbol.asyncDispose]();
    });
  });
}

/** What the one that won has put; each of the others has to have lost by the condition. */
async function winnerOf(ends: readonly PromiseSettledResult<string>[], texts: readonly string[]): Promise<string> {
  const won = ends.flatMap((end, index) => (end.status === "fulfilled" ? [texts[index] ?? ""] : []));
  expect(won).toHaveLength(1);
  for (const end of ends) if (end.status === "rejected") expect(end.reason).toMatchObject({ reason: "OBJECT_CHANGED" });
  return won[0] ?? "";
}
