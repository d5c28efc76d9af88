import { describe, expect, it } from "@jest/globals";
import { DataKey } from "../../key-wrap/data-key.ts";
import { CALL, noise, Rig } from "../archive.suite.ts";
import { type ObjectRecord, partKey, type PartRecord } from "./object-record.ts";

const key = DataKey.random();
const SEEDS = process.env["TURNBOX_FULL"] === "1" ? 20_000 : 3000;

/** A generator of numbers that a seed decides, so that a failure can be seen again. */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed + 1; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state;
  }
}

interface Outcome {
  readonly given: Buffer;
  readonly failure: unknown;
}

/** What a reader gets before it fails. */
async function tryRead(rig: Rig, record: ObjectRecord, by = key): Promise<Outcome> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of rig.reader.read(record, by, CALL)) chunks.push(chunk as Buffer);
    return { given: Buffer.concat(chunks), failure: undefined };
  } catch (failure) {
    return { given: Buffer.concat(chunks), failure };
  }
}

const swap = (record: ObjectRecord, change: (parts: PartRecord[]) => void): ObjectRecord => {
  const parts = [...record.parts];
  change(parts);
  return { ...record, parts, storedBytes: parts.reduce((sum, { bytes }) => sum + bytes, 0) };
};

describe("ObjectReader", () => {
  it("finds a bit that was flipped anywhere in any part, and hands out nothing of that part", async () => {
    const rig = new Rig();
    const plain = noise(300);
    const record = await rig.write(plain, key);
    for (let seed = 0; seed < SEEDS; seed += 1) {
      const random = numbers(seed);
      const index = random.next().value % record.parts.length;
      const at = partKey(record.parts[index]!.sha256);
      const good = rig.store.bytesOf(at);
      const bad = Buffer.from(good);
      bad[random.next().value % bad.byteLength]! ^= 1 << ((random.next().value >>> 16) % 8);
      rig.store.overwrite(at, bad);
      const { given, failure } = await tryRead(rig, record);
      expect({ seed, failure }).toMatchObject({
        seed,
        failure: {
          reason: "ARCHIVE_DAMAGED",
          metadata: { object: record.id, part: String(index), fault: "wrong digest" },
        },
      });
      // Noise is not compressed: what is handed out is at most what the parts before hold.
      expect(given.byteLength).toBeLessThanOrEqual(index * record.partBytes);
      expect(given.equals(plain.subarray(0, given.byteLength))).toBe(true);
      rig.store.overwrite(at, good);
    }
    expect((await rig.read(record, key)).equals(plain)).toBe(true);
  }, 300_000);

  it("names a part that is missing, longer, shorter or empty", async () => {
    const rig = new Rig();
    const record = await rig.write(noise(300), key);
    for (const index of record.parts.keys()) {
      const at = partKey(record.parts[index]!.sha256);
      const good = rig.store.bytesOf(at);
      const expectFault = async (fault: string): Promise<void> => {
        expect((await tryRead(rig, record)).failure).toMatchObject({
          reason: "ARCHIVE_DAMAGED",
          metadata: { part: String(index), fault },
        });
      };
      rig.store.objects.delete(at);
      await expectFault("missing");
      for (const wrong of [good.subarray(1), Buffer.concat([good, Buffer.alloc(1)]), Buffer.alloc(0)]) {
        rig.store.overwrite(at, wrong);
        await expectFault("wrong size");
      }
      rig.store.overwrite(at, good);
    }
  });

  it("finds parts that are swapped, repeated, of another object or another sandbox", async () => {
    const rig = new Rig();
    const record = await rig.write(noise(300), key);
    const sameSandbox = await rig.write(noise(300), key);
    const otherSandbox = await rig.write(noise(300), DataKey.random());
    const forged: readonly (readonly [string, ObjectRecord])[] = [
      ["swapped", swap(record, (parts) => parts.splice(0, 2, parts[1]!, parts[0]!))],
      ["repeated", swap(record, (parts) => parts.splice(1, 1, parts[0]!))],
      ["of another object", swap(record, (parts) => parts.splice(0, 1, sameSandbox.parts[0]!))],
      ["of another sandbox", swap(record, (parts) => parts.splice(0, 1, otherSandbox.parts[0]!))],
      ["with another salt", { ...record, salt: sameSandbox.salt }],
    ];
    for (const [name, one] of forged) {
      expect({ name, ...(await tryRead(rig, one)) }).toMatchObject({
        name,
        failure: { reason: "ARCHIVE_DAMAGED", metadata: { object: record.id, fault: "not authentic" } },
      });
    }
  });

  it("finds that the last parts were dropped, or one was put behind them", async () => {
    const rig = new Rig();
    const record = await rig.write(noise(300), key);
    const dropped = swap(record, (parts) => parts.pop());
    const { failure } = await tryRead(rig, dropped);
    const part = String(dropped.parts.length - 1);
    expect(failure).toMatchObject({ reason: "ARCHIVE_DAMAGED", metadata: { part, fault: "not authentic" } });
    const longer = await tryRead(
      rig,
      swap(record, (parts) => parts.push(parts[0]!)),
    );
    expect(longer.failure).toMatchObject({ reason: "ARCHIVE_DAMAGED", metadata: { fault: "not authentic" } });
  });

  it("hands out no more bytes than were written, and notices fewer", async () => {
    const rig = new Rig();
    const record = await rig.write(noise(300), key);
    for (const plainBytes of [0, 299, 301]) {
      const { given, failure } = await tryRead(rig, { ...record, plainBytes });
      expect(failure).toMatchObject({ reason: "ARCHIVE_DAMAGED", metadata: { fault: "wrong content" } });
      expect(given.byteLength).toBeLessThanOrEqual(plainBytes);
    }
  });

  it("names the data key that is needed, and asks the store for nothing with another one", async () => {
    const rig = new Rig();
    const record = await rig.write(noise(300), key);
    rig.store.step = () => {
      throw new Error("the store was asked");
    };
    expect((await tryRead(rig, record, DataKey.random())).failure).toMatchObject({
      reason: "ARCHIVE_KEY_WRONG",
      metadata: { keyId: key.id },
    });
    const forged = DataKey.random();
    rig.store.step = () => undefined;
    expect((await tryRead(rig, { ...record, key: forged.id }, forged)).failure).toMatchObject({
      reason: "ARCHIVE_DAMAGED",
      metadata: { fault: "not authentic" },
    });
  });

  it("passes on a store that does not answer, which is no damage", async () => {
    const rig = new Rig();
    const record = await rig.write(noise(300), key);
    rig.store.step = () => {
      throw new Error("no answer");
    };
    await expect(rig.read(record, key)).rejects.toThrow("no answer");
  });

  it("fetches a bounded number of parts ahead of a reader that is slow", async () => {
    const rig = new Rig({ partBytes: 64 * 1024 });
    const record = await rig.write(noise(2_000_000), key);
    let gets = 0;
    rig.store.step = (operation) => {
      if (operation === "get") gets += 1;
    };
    const stream = rig.reader.read(record, key, CALL);
    const parts = stream[Symbol.asyncIterator]();
    await parts.next();
    // The prefetch, what zstd and the two streams behind it take in, and no more.
    expect(gets).toBeLessThan(record.parts.length / 2);
    stream.destroy();
    await parts.return?.();
  });

  it("ends with the reason of the signal, and at once when it is destroyed", async () => {
    const rig = new Rig();
    const record = await rig.write(noise(3000), key);
    const abort = new AbortController();
    rig.store.step = async (_operation, _key, { signal }) => {
      setImmediate(() => abort.abort(new Error("enough")));
      await new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason as Error));
      });
    };
    const stream = rig.reader.read(record, key, abort);
    await expect((async () => (await stream.toArray()).length)()).rejects.toThrow("enough");
    const other = rig.reader.read(record, key, CALL);
    const closed = new Promise((resolve) => other.once("close", resolve));
    other.resume();
    setImmediate(() => other.destroy());
    await closed;
  });
});
