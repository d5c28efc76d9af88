import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import fc from "fast-check";
import { DataKey } from "../../key-wrap/data-key.ts";
import { CALL, chunksOf, failureOf, noise, readAll, Rig } from "../archive.suite.ts";
import { GRACE_MS, TAG_BYTES } from "../format.ts";
import { MemoryStore } from "../memory-store.suite.ts";
import { ObjectReader } from "./object-reader.ts";
import { objectRecord, partKey } from "./object-record.ts";
import { ObjectWriter } from "./object-writer.ts";

const key = DataKey.random();

describe("ObjectWriter", () => {
  it("writes what is read again, for sizes of nothing, one byte and around the bounds of parts", async () => {
    for (const bytes of [0, 1, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 64, 65, 128, 500]) {
      const rig = new Rig();
      const plain = noise(bytes);
      const record = await rig.write(plain, key);
      expect(objectRecord.decode(JSON.parse(JSON.stringify(record)), "object")).toEqual(record);
      expect(record.plainBytes).toBe(bytes);
      expect((await rig.read(record, key)).equals(plain)).toBe(true);
    }
  });

  it("gives back any bytes in any chunks and parts", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 12 }),
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 1, max: 90 }),
        async (chunks, partBytes, chunkBytes) => {
          const rig = new Rig({ partBytes });
          rig.store.chunkBytes = chunkBytes;
          const record = await rig.writer.write(
            (async function* () {
              yield* chunks;
            })(),
            key,
            CALL,
          );
          expect((await rig.read(record, key)).equals(Buffer.concat(chunks))).toBe(true);
          expect(record.parts.slice(0, -1).every(({ bytes }) => bytes === partBytes + TAG_BYTES)).toBe(true);
          expect(rig.store.keys()).toEqual([...new Set(record.parts.map(({ sha256 }) => partKey(sha256)))].toSorted());
        },
      ),
      { numRuns: 150 },
    );
  });

  it("compresses, and shows nothing of what it stores", async () => {
    const rig = new Rig({ partBytes: 1000 });
    const plain = Buffer.from("the same words ".repeat(10_000));
    const record = await rig.write(plain, key);
    expect(record.storedBytes).toBeLessThan(1000);
    expect(rig.store.keys().some((at) => rig.store.bytesOf(at).includes("same words"))).toBe(false);
  });

  it("encrypts the same bytes to other parts each time", async () => {
    const rig = new Rig();
    const plain = noise(300);
    const [first, second] = [await rig.write(plain, key), await rig.write(plain, key)];
    expect(second.id).not.toBe(first.id);
    expect(rig.store.keys()).toHaveLength(first.parts.length + second.parts.length);
  });

  it("takes a part that is there already for its own, and refuses another of its name", async () => {
    const store = new MemoryStore();
    const salt = noise(32);
    const writer = new ObjectWriter({ store, clock: createManualClock(), partBytes: 64, salt: () => salt });
    const plain = noise(200);
    const record = await writer.write(chunksOf(plain), key, CALL);
    expect(await writer.write(chunksOf(plain), key, CALL)).toEqual(record);
    store.overwrite(partKey(record.parts[0]!.sha256), Buffer.from("x"));
    expect(await failureOf(writer.write(chunksOf(plain), key, CALL))).toMatchObject({
      reason: "ARCHIVE_DAMAGED",
      metadata: { fault: "wrong size" },
    });
  });

  it("sends a bounded number of parts at a time and reads its source no faster", async () => {
    const rig = new Rig();
    const waiting: (() => void)[] = [];
    let most = 0;
    rig.store.step = async () => {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        most = Math.max(most, waiting.length);
        setImmediate(() => {
          waiting.splice(waiting.indexOf(resolve), 1);
          resolve();
        });
      });
    };
    const plain = noise(5000);
    const record = await rig.write(plain, key);
    expect(record.parts.length).toBeGreaterThan(50);
    expect(most).toBeLessThanOrEqual(3);
    expect((await rig.read(record, key)).equals(plain)).toBe(true);
  });

  it("ends with the failure of its source, of the store, or with the reason of the signal", async () => {
    const rig = new Rig();
    const broken = async function* (): AsyncGenerator<Uint8Array> {
      yield noise(1000);
      throw new Error("the source broke");
    };
    await expect(rig.writer.write(broken(), key, CALL)).rejects.toThrow("the source broke");

    rig.store.step = () => {
      throw new Error("the store broke");
    };
    await expect(rig.write(noise(5000), key)).rejects.toThrow("the store broke");

    const abort = new AbortController();
    rig.store.step = async (_operation, _key, { signal }) => {
      abort.abort(new Error("enough"));
      await new Promise((_, reject) => {
        if (signal.aborted) reject(signal.reason as Error);
        else signal.addEventListener("abort", () => reject(signal.reason as Error));
      });
    };
    await expect(rig.writer.write(chunksOf(noise(5000)), key, abort)).rejects.toThrow("enough");
  });

  it("ends when the signal aborts while the source gives nothing", async () => {
    const abort = new AbortController();
    const silent = async function* (): AsyncGenerator<Uint8Array> {
      yield noise(10);
      abort.abort(new Error("enough"));
      await new Promise(() => undefined);
    };
    await expect(new Rig().writer.write(silent(), key, abort)).rejects.toThrow("enough");
  });

  it("gives up an object that takes longer than its parts are safe from garbage collection", async () => {
    const clock = createManualClock();
    const rig = new Rig({ clock });
    const slow = async function* (): AsyncGenerator<Uint8Array> {
      yield noise(300_000);
      await clock.advance(GRACE_MS / 2 + 1);
      yield noise(300_000);
    };
    expect((await failureOf(rig.writer.write(slow(), key, CALL))).reason).toBe("DEADLINE_EXCEEDED");
  });
});

it("a reader fetches any number of parts ahead", async () => {
  const rig = new Rig();
  const plain = noise(2000);
  const record = await rig.write(plain, key);
  for (const ahead of [0, 1, 9]) {
    const reader = new ObjectReader({ store: rig.store, ahead });
    expect((await readAll(reader.read(record, key, CALL) as AsyncIterable<Uint8Array>)).equals(plain)).toBe(true);
  }
});
