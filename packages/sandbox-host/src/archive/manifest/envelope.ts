import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { zstdCompress, zstdDecompress } from "node:zlib";
import { invalidArgument } from "@turnbox/core";
import type { DataKey } from "../../key-wrap/data-key.ts";
import { MAX_PUT_BYTES } from "../../object-store/object-store.ts";
import { damaged } from "../damage.ts";
import { FORMAT, MANIFEST_INFO, NONCE_BYTES, SALT_BYTES, TAG_BYTES } from "../format.ts";
import { encodeHeader, type Header, MAX_JSON_BYTES, parseJson } from "./header.ts";
import type { ManifestHead } from "./manifest.ts";

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);
/** One nonce is enough: the key under it is derived from a salt that is fresh with each write. */
const NONCE = Buffer.alloc(NONCE_BYTES);

/** A manifest as it is stored: the header, the encrypted body, its tag. */
export async function sealManifest(head: ManifestHead, body: object, dataKey: DataKey): Promise<Buffer> {
  const json = Buffer.from(JSON.stringify(body));
  if (json.byteLength > MAX_JSON_BYTES)
    throw invalidArgument("manifest", `must not be larger than ${MAX_JSON_BYTES} bytes of JSON`);
  const salt = randomBytes(SALT_BYTES);
  const { owner, revision, epoch, key, keys } = head;
  const jsonBytes = json.byteLength;
  const header = encodeHeader({
    format: FORMAT,
    owner,
    revision,
    epoch,
    key,
    keys,
    salt: salt.toString("hex"),
    jsonBytes,
  });
  const contentKey = dataKey.derive(salt, MANIFEST_INFO);
  const cipher = createCipheriv("aes-256-gcm", contentKey, NONCE);
  cipher.setAAD(header);
  const encrypted = cipher.update(await compress(json));
  contentKey.fill(0);
  const sealed = Buffer.concat([header, encrypted, cipher.final(), cipher.getAuthTag()]);
  if (sealed.byteLength > MAX_PUT_BYTES)
    throw invalidArgument("manifest", `must not be larger than ${MAX_PUT_BYTES} bytes`);
  return sealed;
}

export interface SealedManifest {
  readonly bytes: Buffer;
  readonly header: Header;
  /** Bytes of the header in front. */
  readonly length: number;
}

/** The JSON of the body, when all of the manifest is known to be authentic. */
export async function openManifest({ bytes, header, length }: SealedManifest, dataKey: DataKey): Promise<unknown> {
  const end = bytes.byteLength - TAG_BYTES;
  if (end < length) throw damaged("body: is cut off", { fault: "wrong size", field: "body" });
  const contentKey = dataKey.derive(Buffer.from(header.salt, "hex"), MANIFEST_INFO);
  const decipher = createDecipheriv("aes-256-gcm", contentKey, NONCE, { authTagLength: TAG_BYTES });
  contentKey.fill(0);
  decipher.setAAD(bytes.subarray(0, length));
  decipher.setAuthTag(bytes.subarray(end));
  const compressed = decipher.update(bytes.subarray(length, end));
  try {
    decipher.final();
  } catch (cause) {
    throw damaged("body: was changed, or its header was", { fault: "not authentic", field: "body", cause });
  }
  return parseJson(await unpack(compressed, header.jsonBytes), "body");
}

async function unpack(compressed: Buffer, bytes: number): Promise<Buffer> {
  const json = await decompress(compressed, { maxOutputLength: bytes }).catch((cause: unknown) => {
    throw damaged("body: does not decompress", { fault: "wrong content", field: "body", cause });
  });
  if (json.byteLength !== bytes) throw damaged("body: has a wrong length", { fault: "wrong content", field: "body" });
  return json;
}
