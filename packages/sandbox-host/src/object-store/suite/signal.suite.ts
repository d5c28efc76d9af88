import { randomBytes } from "node:crypto";
import { finished } from "node:stream/promises";
import { describe, expect } from "@jest/globals";
import { PROBES } from "../probe.ts";
import { call, listAll, MIB, read, type SuiteFixture, test } from "./suite-fixture.suite.ts";

export function signalSuite(suite: SuiteFixture): void {
  describe("ends", () => {
    test("does nothing under a signal that has aborted, and fails with its reason", async () => {
      const { store } = suite;
      const key = `${suite.folder()}/a`;
      await store.put(key, Buffer.from("x"), {}, call);
      const gone = { signal: AbortSignal.abort(new Error("gone")) };
      const body = (async function* () {
        yield Buffer.from("never");
      })();
      for (const attempt of [
        () => store.put(key, Buffer.from("never"), {}, gone),
        () => store.putStream(key, body, gone),
        () => store.get(key, {}, gone),
        () => store.stat(key, gone),
        () => store.list("", {}, gone),
        () => store.delete([key], gone),
        () => store.check(gone),
      ]) {
        await expect(attempt()).rejects.toThrow("gone");
      }
      expect((await read(store, key)).toString()).toBe("x");
    });

    test("ends the body of an object with the signal, also while it is not read", async () => {
      const { store } = suite;
      const key = `${suite.folder()}/a`;
      await store.put(key, randomBytes(8 * MIB), {}, call);
      for (const isRead of [true, false]) {
        const stop = new AbortController();
        const { body } = await store.get(key, {}, { signal: stop.signal });
        const iterator = body.iterator() as AsyncIterableIterator<Buffer>;
        if (isRead) await iterator.next();
        stop.abort(new Error("enough"));
        const rest = async (): Promise<void> => {
          while ((await iterator.next()).done !== true);
        };
        await expect(rest()).rejects.toThrow("enough");
        expect(body.destroyed).toBe(true);
      }
    });

    test("releases everything when a reader destroys the body, before its first byte and in the middle", async () => {
      const { store } = suite;
      const key = `${suite.folder()}/a`;
      const content = randomBytes(4 * MIB);
      await store.put(key, content, {}, call);
      // More than connections and descriptors that an adapter may keep: what is not released is missing at the end.
      for (let round = 0; round < 60; round += 1) {
        const { body } = await store.get(key, {}, call);
        const closed = finished(body, { writable: false }).catch(() => undefined);
        if (round % 2 === 0) await (body.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer>).next();
        body.destroy();
        await closed;
      }
      expect((await read(store, key)).equals(content)).toBe(true);
    });

    test("serves by its own check, which leaves no object", async () => {
      await suite.store.check(call);
      await suite.store.check(call);
      expect((await listAll(suite.store, PROBES)).objects).toEqual([]);
    });
  });
}
