import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect } from "@jest/globals";
import { call, expectReason, MIB, Noise, readText, type SuiteFixture, test } from "./suite-fixture.suite.ts";

const LARGE_BYTES = 40 * MIB;
/** What a put may hold of a body. */
const MOST_HELD_BYTES = 128 * MIB;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** The bytes in buffers that are still in use. */
function heldBytes(): number {
  collect();
  return process.memoryUsage().arrayBuffers;
}

export function streamSuite(suite: SuiteFixture): void {
  const expectNothing = async (key: string): Promise<void> => {
    expect(await suite.store.stat(key, call)).toBeUndefined();
    expect(await suite.harness.leftovers()).toEqual([]);
  };

  describe("streams", () => {
    test("stores a large body, and gives it back byte for byte, as a whole and in part", async () => {
      const { store } = suite;
      const key = `${suite.folder()}/large`;
      const noise = new Noise(LARGE_BYTES);
      const { etag, bytes } = await store.putStream(key, noise, call);
      expect(bytes).toBe(LARGE_BYTES);
      const { body, ...info } = await store.get(key, {}, call);
      expect(info).toMatchObject({ bytes, etag });
      const hash = createHash("sha256");
      for await (const chunk of body) hash.update(chunk as Buffer);
      expect(hash.digest("hex")).toBe(noise.digest);
      const { body: part } = await store.get(key, { range: { offset: LARGE_BYTES - 10, bytes: 100 } }, call);
      expect(Buffer.concat((await part.toArray()) as Buffer[])).toHaveLength(10);
      expect(await suite.harness.leftovers()).toEqual([]);
    });

    test("reads a body only as fast as it stores it, so that no large one has to fit into memory", async () => {
      const { store } = suite;
      const enoughBytes = store.kind === "fake" ? MIB : 250 * MIB;
      const body = new Noise(2 * enoughBytes);
      const stop = new AbortController();
      const before = heldBytes();
      let mostBytes = 0;
      let looks = 0;
      const watched = (async function* () {
        for await (const chunk of body) {
          looks += 1;
          if (looks % 10 === 0) mostBytes = Math.max(mostBytes, heldBytes() - before);
          if (body.given > enoughBytes) stop.abort(new Error("enough"));
          yield chunk;
        }
      })();
      const key = `${suite.folder()}/endless`;
      await expect(store.putStream(key, watched, { signal: stop.signal })).rejects.toThrow("enough");
      expect(mostBytes).toBeLessThan(MOST_HELD_BYTES);
      await expectNothing(key);
    });

    test("stores small and empty bodies, and such as consist of many small chunks", async () => {
      const { store } = suite;
      const folder = suite.folder();
      expect(await store.putStream(`${folder}/empty`, Readable.from([]), call)).toMatchObject({ bytes: 0 });
      expect(await readText(store, `${folder}/empty`)).toBe("");
      const chunks = Array.from({ length: 5000 }, (_, index) => Buffer.from(`${index},`));
      const { bytes } = await store.putStream(`${folder}/chunks`, Readable.from([Buffer.alloc(0), ...chunks]), call);
      expect(await readText(store, `${folder}/chunks`)).toBe(Buffer.concat(chunks).toString());
      expect(bytes).toBe(Buffer.concat(chunks).byteLength);
    });

    test("replaces an object only when the body has ended well", async () => {
      const { store } = suite;
      const key = `${suite.folder()}/a`;
      await store.put(key, Buffer.from("old"), {}, call);
      const own = new Error("the disk of the sender");
      const failing = (async function* () {
        yield* new Noise(20 * MIB);
        throw own;
      })();
      await expect(store.putStream(key, failing, call)).rejects.toBe(own);
      expect(await readText(store, key)).toBe("old");
      expect(await suite.harness.leftovers()).toEqual([]);
      await store.putStream(key, Readable.from([Buffer.from("new")]), call);
      expect(await readText(store, key)).toBe("new");
    });

    test("throws the failure of a body as it is, and leaves nothing, wherever it comes", async () => {
      for (const bytes of [0, 10, 20 * MIB]) {
        const key = `${suite.folder()}/a`;
        const own = Object.assign(new Error("failed"), { code: "ENOENT" });
        const failing = (async function* () {
          yield* new Noise(bytes);
          throw own;
        })();
        await expect(suite.store.putStream(key, failing, call)).rejects.toBe(own);
        await expectNothing(key);
      }
    });

    test("ends with its signal in the middle, ends the body, and leaves nothing", async () => {
      for (const bytes of [1, 3 * MIB, 36 * MIB]) {
        const key = `${suite.folder()}/a`;
        const body = new Noise(64 * MIB);
        const stop = new AbortController();
        const cut = (async function* () {
          for await (const chunk of body) {
            if (body.given >= bytes) stop.abort(new Error("no longer wanted"));
            yield chunk;
          }
        })();
        await expect(suite.store.putStream(key, cut, { signal: stop.signal })).rejects.toThrow("no longer wanted");
        expect(body.ended).toBe(true);
        await expectNothing(key);
      }
    });

    test("ends with its signal while the body does not go on", async () => {
      const stop = new AbortController();
      const asked = Promise.withResolvers<void>();
      const hanging: AsyncIterable<Uint8Array> = {
        [Symbol.asyncIterator]: () => ({
          next: () => {
            asked.resolve();
            return new Promise(() => undefined);
          },
          return: () => new Promise(() => undefined),
        }),
      };
      const key = `${suite.folder()}/a`;
      const end = suite.store.putStream(key, hanging, { signal: stop.signal });
      const ended = expect(end).rejects.toThrow("enough");
      await asked.promise;
      stop.abort(new Error("enough"));
      await ended;
      await expectNothing(key);
    });

    test("refuses a body by its key before it reads any of it", async () => {
      const body = new Noise(MIB);
      await expectReason(suite.store.putStream("../a", body, call), "INVALID_ARGUMENT");
      expect(body.given).toBe(0);
    });
  });
}
