import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { describe, expect } from "@jest/globals";
import { hasReason } from "@turnbox/core";
import { MAX_PUT_BYTES, type ObjectStore } from "../object-store.ts";
import { call, expectReason, read, readText, type SuiteFixture, test } from "./suite-fixture.suite.ts";

export function objectSuite(suite: SuiteFixture): void {
  describe("objects", () => {
    test("gives back what was put, and says how long it is, what it is called and since when it is there", async () => {
      const { store } = suite;
      const key = `${suite.folder()}/a`;
      const content = randomBytes(300_000);
      const beforeMs = Date.now();
      const { etag } = await store.put(key, content, {}, call);
      const { body, ...info } = await store.get(key, {}, call);
      expect(Buffer.concat((await body.toArray()) as Buffer[]).equals(content)).toBe(true);
      expect(info).toEqual({ key, bytes: 300_000, etag, modifiedAtMs: expect.any(Number) });
      expect(await store.stat(key, call)).toEqual(info);
      expect(Math.abs(info.modifiedAtMs - beforeMs)).toBeLessThan(60_000);
    });

    test("replaces an object as a whole, with another etag for another content", async () => {
      const { store } = suite;
      const key = `${suite.folder()}/a`;
      const first = await store.put(key, Buffer.from("a longer first content"), {}, call);
      const second = await store.put(key, Buffer.from("second"), {}, call);
      expect(second.etag).not.toBe(first.etag);
      expect(await readText(store, key)).toBe("second");
    });

    test("gives a reader the whole object that was there when it began, while another one takes its place", async () => {
      const { store } = suite;
      const key = `${suite.folder()}/a`;
      const [old, young] = [randomBytes(2_000_000), randomBytes(1_000_000)];
      await store.put(key, old, {}, call);
      const { body } = await store.get(key, {}, call);
      await store.put(key, young, {}, call);
      const seen = Buffer.concat((await body.toArray()) as Buffer[]);
      expect(seen.equals(old)).toBe(true);
      expect((await read(store, key)).equals(young)).toBe(true);
    });

    test("stores an object without content", async () => {
      const { store } = suite;
      const key = `${suite.folder()}/empty`;
      const { etag } = await store.put(key, new Uint8Array(), {}, call);
      expect(await store.stat(key, call)).toMatchObject({ bytes: 0, etag });
      expect(await readText(store, key)).toBe("");
      expect(await readText(store, key, { range: { offset: 0, bytes: 10 } })).toBe("");
    });

    test("reads a part: at the beginning, in the middle, over the end and behind it", async () => {
      const { store } = suite;
      const key = `${suite.folder()}/a`;
      const { etag } = await store.put(key, Buffer.from("0123456789"), {}, call);
      const part = (offset: number, bytes: number): Promise<string> =>
        readText(store, key, { range: { offset, bytes } });
      expect(await part(0, 3)).toBe("012");
      expect(await part(4, 1)).toBe("4");
      expect(await part(8, 100)).toBe("89");
      expect(await part(10, 1)).toBe("");
      expect(await part(1000, 5)).toBe("");
      const { body, ...info } = await store.get(key, { range: { offset: 2, bytes: 2 } }, call);
      body.destroy();
      expect(info).toMatchObject({ bytes: 10, etag });
    });

    test("says that an object is missing", async () => {
      const { store } = suite;
      const folder = suite.folder();
      await store.put(`${folder}/a`, Buffer.from("a"), {}, call);
      expect(await store.stat(`${folder}/b`, call)).toBeUndefined();
      await expectReason(store.get(`${folder}/b`, {}, call), "OBJECT_NOT_FOUND");
      await expectReason(store.get(`${folder}/b/c`, { range: { offset: 0, bytes: 1 } }, call), "OBJECT_NOT_FOUND");
      await expectReason(store.get(folder, {}, call), "OBJECT_NOT_FOUND");
      expect(await store.stat(folder, call)).toBeUndefined();
    });

    test("removes objects, also those that are gone, and leaves others", async () => {
      const { store } = suite;
      const folder = suite.folder();
      for (const name of ["a", "b", "c"]) await store.put(`${folder}/${name}`, Buffer.from(name), {}, call);
      await store.delete([`${folder}/a`, `${folder}/b`, `${folder}/never`, `${folder}/no/folder`], call);
      await store.delete([`${folder}/a`], call);
      await store.delete([], call);
      expect(await store.stat(`${folder}/a`, call)).toBeUndefined();
      expect(await store.stat(`${folder}/b`, call)).toBeUndefined();
      expect(await readText(store, `${folder}/c`)).toBe("c");
      await store.put(`${folder}/a`, Buffer.from("again"), { condition: { kind: "absent" } }, call);
      expect(await readText(store, `${folder}/a`)).toBe("again");
    });

    test("takes each key that the rule allows", async () => {
      const { store } = suite;
      const folder = suite.folder();
      const deep = `${folder}/${"d".repeat(200)}/${"e".repeat(200)}`;
      for (const key of [`${folder}/A.b_c-9`, `${folder}/.hidden`, `${folder}/...`, deep, deep.padEnd(512, "/f")]) {
        if (key.startsWith(`${deep}/`)) await store.delete([deep], call);
        await store.put(key, Buffer.from(key), {}, call);
        expect(await readText(store, key)).toBe(key);
      }
    });

    test("holds a key and keys below it, or refuses the second by its rule", async () => {
      const { store } = suite;
      const [one, other] = [suite.folder(), suite.folder()];
      const attempt = async (key: string): Promise<"stored" | "refused"> => {
        try {
          await store.put(key, Buffer.from("x"), {}, call);
          return "stored";
        } catch (thrown) {
          if (hasReason(thrown, "INVALID_ARGUMENT")) return "refused";
          throw thrown;
        }
      };
      await store.put(`${one}/a`, Buffer.from("x"), {}, call);
      expect(await attempt(`${one}/a/b`)).toBe(suite.options.nestedKeys);
      await store.put(`${other}/a/b`, Buffer.from("x"), {}, call);
      expect(await attempt(`${other}/a`)).toBe(suite.options.nestedKeys);
    });

    test("refuses arguments by their rule, and names the field", async () => {
      const { store } = suite;
      await refuses(store, "key", ["", "/a", "a/", "a//b", ".", "a/..", "../a", "a b", "ä", "a\0", "k".repeat(201)]);
      const body = new Uint8Array(MAX_PUT_BYTES + 1);
      expect(await expectReason(store.put("a", body, {}, call), "INVALID_ARGUMENT")).toMatchObject({
        metadata: { field: "body", rule: expect.any(String) },
      });
      const range = { offset: 0, bytes: 0 };
      expect(await expectReason(store.get("a", { range }, call), "INVALID_ARGUMENT")).toMatchObject({
        metadata: { field: "range.bytes" },
      });
      const negative = { offset: -1, bytes: 1 };
      expect(await expectReason(store.get("a", { range: negative }, call), "INVALID_ARGUMENT")).toMatchObject({
        metadata: { field: "range.offset" },
      });
    });
  });
}

async function refuses(store: ObjectStore, field: string, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    const attempts = [
      store.put(key, Buffer.from("x"), {}, call),
      store.putStream(key, Readable.from([]), call),
      store.get(key, {}, call),
      store.stat(key, call),
    ];
    for (const attempt of attempts) {
      const { metadata, message } = await expectReason(attempt, "INVALID_ARGUMENT");
      expect(metadata["field"]).toBe(field);
      expect(message).toContain(metadata["rule"]);
    }
    expect((await expectReason(store.delete(["good", key], call), "INVALID_ARGUMENT")).metadata["field"]).toBe("keys");
  }
}
