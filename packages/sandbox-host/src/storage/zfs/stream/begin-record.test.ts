import { describe, expect, it } from "@jest/globals";
import { asClone, readBegin, unchanged } from "./begin-record.ts";
import { fletcher4, RECORD_BYTES, zfsStream } from "./zfs-stream.suite.ts";

async function* inParts(bytes: Buffer, partBytes: number): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0; at < bytes.length; at += partBytes) yield bytes.subarray(at, at + partBytes);
}

async function collect(parts: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const part of parts) all.push(part);
  return Buffer.concat(all);
}

const content = Buffer.from(Array.from({ length: 4000 }, (_, index) => (index * 7919) % 251));

describe("the begin of a zfs stream", () => {
  it("says what it is of, and passes on what it is", async () => {
    const bytes = zfsStream(content, 1);
    for (const partBytes of [1, 100, 312, 5000]) {
      const begun = await readBegin(inParts(bytes, partBytes));
      expect(begun).toMatchObject({
        guid: "13813687641499641902",
        parentGuid: "4808149999668121279",
        isClone: true,
      });
      expect(await collect(unchanged(begun))).toEqual(bytes);
    }
  });

  it("is refused if it is that of something else, or is not all there", async () => {
    const refused = { reason: "STREAM_DAMAGED" };
    await expect(readBegin(inParts(Buffer.alloc(1000), 100))).rejects.toMatchObject(refused);
    await expect(readBegin(inParts(zfsStream(content).subarray(0, 311), 100))).rejects.toMatchObject(refused);
  });

  it("can be that of a clone with another name, under a checksum that is right again", async () => {
    for (const partBytes of [1, 300, 312, 313, 4000]) {
      const begun = await readBegin(inParts(zfsStream(content), partBytes));
      const changed = await collect(asClone(begun, "x/g3@other"));
      const [before, end] = [changed.subarray(0, -RECORD_BYTES), changed.subarray(-RECORD_BYTES)];
      expect(before.toString("latin1", 56, 67)).toBe("x/g3@other\0");
      expect(before.readUInt32LE(36)).toBe(1);
      expect(before.subarray(RECORD_BYTES)).toEqual(content);
      expect([8, 16, 24, 32].map((at) => end.readBigUInt64LE(at))).toEqual(fletcher4(before));
    }
  });

  it("is not renamed if the record that ends it is not the last", async () => {
    const bytes = Buffer.concat([zfsStream(content), Buffer.alloc(8)]);
    const begun = await readBegin(inParts(bytes, 500));
    await expect(collect(asClone(begun, "x/g3@other"))).rejects.toMatchObject({ reason: "STREAM_DAMAGED" });
  });
});
