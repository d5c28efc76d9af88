import { createHash, randomBytes } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { PartsCheck } from "./content-check.ts";

const PART_BYTES = 1000;

/** As S3 makes it. */
function checksumOf(content: Buffer): string {
  const all = createHash("sha256");
  let parts = 0;
  for (let at = 0; at < content.byteLength; at += PART_BYTES, parts += 1) {
    all.update(
      createHash("sha256")
        .update(content.subarray(at, at + PART_BYTES))
        .digest(),
    );
  }
  return `${all.digest("base64")}-${parts}`;
}

function isGood(content: Buffer, checksum: string, chunkBytes: number): boolean {
  const check = new PartsCheck(checksum, PART_BYTES);
  for (let at = 0; at < content.byteLength; at += chunkBytes) check.update(content.subarray(at, at + chunkBytes));
  return check.isGood();
}

describe("PartsCheck", () => {
  it.each([1500, 2000, 5001])("knows %d bytes again, however they come, and damage in each part", (bytes) => {
    const content = randomBytes(bytes);
    const checksum = checksumOf(content);
    for (const chunkBytes of [1, 999, 1000, 1001, 10_000]) expect(isGood(content, checksum, chunkBytes)).toBe(true);
    for (const at of [0, 1001, bytes - 1]) {
      const damaged = Buffer.from(content);
      damaged.writeUInt8(damaged.readUInt8(at) ^ 1, at);
      expect(isGood(damaged, checksum, 300)).toBe(false);
    }
    expect(isGood(content.subarray(0, 1000), checksum, 300)).toBe(false);
  });
});
