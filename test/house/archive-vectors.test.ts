import { createDecipheriv, createHash, hkdfSync } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { describe, expect, it } from "@jest/globals";
import { MemoryStore } from "../../packages/sandbox-host/src/archive/memory-store.suite.ts";
import { DataKeys } from "../../packages/sandbox-host/src/archive/manifest/data-keys.ts";
import { ManifestStore } from "../../packages/sandbox-host/src/archive/manifest/manifest-store.ts";
import { sandboxOf } from "../../packages/sandbox-host/src/archive/manifest/owner.ts";
import { ObjectReader } from "../../packages/sandbox-host/src/archive/object/object-reader.ts";
import { partKey } from "../../packages/sandbox-host/src/archive/object/object-record.ts";
import { FileKeyWrap } from "../../packages/sandbox-host/src/key-wrap/file/file-key-wrap.ts";

/** What docs/ARCHIVE.md has below _Vectors_. */
interface Vectors {
  readonly wrappingKey: string;
  readonly wrappingKeyId: string;
  readonly dataKey: string;
  readonly dataKeyId: string;
  readonly plain: string;
  readonly parts: readonly string[];
  readonly manifest: string;
}

const text = readFileSync(path.resolve(import.meta.dirname, "../../docs/ARCHIVE.md"), "utf8");
const block = /^## Vectors$.*?^```json\n(.*?)^```$/ms.exec(text)?.[1] ?? "{}";
const vectors = JSON.parse(block) as Vectors;
const CALL = { signal: new AbortController().signal };
const OWNER = sandboxOf("tenant-1", "sandbox-1");

const hkdf = (key: Buffer, salt: Buffer, info: string): Buffer => Buffer.from(hkdfSync("sha256", key, salt, info, 32));
const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

function decrypt(
  key: Buffer,
  { nonce, associated, bytes }: Readonly<Record<"nonce" | "associated" | "bytes", Buffer>>,
): Buffer {
  const decipher = createDecipheriv("aes-256-gcm", key, nonce).setAAD(associated);
  decipher.setAuthTag(bytes.subarray(-16));
  return Buffer.concat([decipher.update(bytes.subarray(0, -16)), decipher.final()]);
}

interface StoredRecord {
  readonly id: string;
  readonly salt: string;
  readonly parts: readonly { readonly sha256: string }[];
}

describe("the vectors of docs/ARCHIVE.md", () => {
  const wrapping = Buffer.from(vectors.wrappingKey, "hex");
  const manifest = Buffer.from(vectors.manifest, "base64");
  const parts = vectors.parts.map((part) => Buffer.from(part, "base64"));
  const headerEnd = 9 + manifest.readUInt32BE(5);

  it("decode by the words of the page", () => {
    expect(manifest.toString("latin1", 0, 5)).toBe("TBXA\u0001");
    const header = JSON.parse(manifest.toString("utf8", 9, headerEnd)) as {
      readonly salt: string;
      readonly keys: readonly { readonly id: string; readonly wrapped: string }[];
    };
    const none = Buffer.alloc(0);
    expect(`file:${hkdf(wrapping, none, "turnbox archive wrapping key id 1").toString("hex", 0, 16)}`).toBe(
      vectors.wrappingKeyId,
    );
    const wrapped = Buffer.from(header.keys[0]!.wrapped, "base64");
    const context = ["turnbox archive key wrap 1", "1", vectors.wrappingKeyId, "tenant-1", "sandbox", "sandbox-1"];
    const dataKey = decrypt(hkdf(wrapping, wrapped.subarray(0, 32), "turnbox archive key wrap 1"), {
      nonce: Buffer.alloc(12),
      associated: Buffer.concat(context.flatMap((field) => [Buffer.from([0, 0, 0, field.length]), Buffer.from(field)])),
      bytes: wrapped.subarray(32),
    });
    expect(dataKey.toString("hex")).toBe(vectors.dataKey);
    expect(hkdf(dataKey, none, "turnbox archive data key id 1").toString("hex", 0, 16)).toBe(vectors.dataKeyId);

    const body = decrypt(hkdf(dataKey, Buffer.from(header.salt, "hex"), "turnbox archive manifest 1"), {
      nonce: Buffer.alloc(12),
      associated: manifest.subarray(0, headerEnd),
      bytes: manifest.subarray(headerEnd),
    });
    const { snapshots } = JSON.parse(zstdDecompressSync(body).toString("utf8")) as {
      readonly snapshots: readonly { readonly object: StoredRecord }[];
    };
    const { id, salt, parts: records } = snapshots[0]!.object;
    expect(parts.map(sha256)).toEqual(records.map((part) => part.sha256));
    expect(sha256(Buffer.concat(parts))).toBe(id);
    const contentKey = hkdf(dataKey, Buffer.from(salt, "hex"), "turnbox archive object 1");
    const compressed = parts.map((bytes, index) =>
      decrypt(contentKey, {
        nonce: Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, index]),
        associated: Buffer.concat([
          Buffer.from("turnbox part"),
          Buffer.from([1, 1]),
          Buffer.from(salt, "hex"),
          Buffer.from([0, 0, 0, index, index === parts.length - 1 ? 1 : 0]),
        ]),
        bytes,
      }),
    );
    expect(zstdDecompressSync(Buffer.concat(compressed)).toString("utf8")).toBe(vectors.plain);
  });

  it("are read by the code of this version", async () => {
    const store = new MemoryStore();
    store.overwrite("v1/manifests/tenant-1/sandboxes/sandbox-1", manifest);
    for (const part of parts) store.overwrite(partKey(sha256(part)), part);
    using keys = new DataKeys(new FileKeyWrap([{ id: vectors.wrappingKeyId, bytes: wrapping }]));
    const clock = { nowMs: () => 0, monotonicMs: () => 0, sleep: () => Promise.reject(new Error("nothing waits")) };
    const manifests = new ManifestStore({ store, keys, clock });
    const { manifest: read, version } = await manifests.read(OWNER, {}, CALL);
    expect(version).toMatchObject({ revision: 3, epoch: 2 });
    const [snapshot] = read.snapshots;
    const key = await keys.openOf(read, snapshot!.object.key, CALL);
    const chunks = await new ObjectReader({ store }).read(snapshot!.object, key, CALL).toArray();
    expect(Buffer.concat(chunks as Buffer[]).toString("utf8")).toBe(vectors.plain);
  });
});
