import type { KeyOwner } from "../../key-wrap/key-wrap.ts";
import { damaged } from "../damage.ts";
import { type Decoder, fields, hex, integer, list, oneOf, text, wrongField } from "../decode.ts";
import { FORMAT, SALT_BYTES } from "../format.ts";
import type { KeyEntry, ManifestHead } from "./manifest.ts";
import { ID } from "./owner.ts";

const MAGIC = Buffer.from("TBXA");
/** Magic, the format as a byte, the length of the header as four. */
const PREFIX_BYTES = 9;
const MAX_HEADER_BYTES = 2 * 1024 * 1024;
const MAX_KEYS = 1000;

/** What is in front of the encrypted body of a manifest. */
export interface Header extends ManifestHead {
  readonly format: typeof FORMAT;
  /** From which the key of the body is derived, as hex; a new one with each write. */
  readonly salt: string;
  /** Bytes of the body as JSON. */
  readonly jsonBytes: number;
}

/** All JSON of a manifest. */
export const MAX_JSON_BYTES = 64 * 1024 * 1024;

const owner: Decoder<KeyOwner> = fields<KeyOwner>({
  tenant: text(128, ID),
  kind: oneOf("sandbox", "template"),
  id: text(128, ID),
});

const keyEntry: Decoder<KeyEntry> = fields<KeyEntry>({
  id: hex(16),
  owner,
  wrappedBy: text(512),
  wrapped: text(8192, /^[A-Za-z0-9+/]+={0,2}$/),
});

const shape: Decoder<Header> = fields<Header>({
  format: oneOf(FORMAT),
  owner,
  revision: integer(1),
  epoch: integer(0),
  key: hex(16),
  keys: list(keyEntry, MAX_KEYS),
  salt: hex(SALT_BYTES),
  jsonBytes: integer(2, MAX_JSON_BYTES),
});

/** The header as it is stored. Each of its bytes is authenticated with the body. */
export function encodeHeader(header: Header): Buffer {
  const json = Buffer.from(JSON.stringify(header));
  if (json.byteLength > MAX_HEADER_BYTES) throw wrongField("keys", `do not fit into ${MAX_HEADER_BYTES} bytes`);
  const prefix = Buffer.alloc(PREFIX_BYTES);
  MAGIC.copy(prefix);
  prefix.writeUInt8(FORMAT, MAGIC.byteLength);
  prefix.writeUInt32BE(json.byteLength, MAGIC.byteLength + 1);
  return Buffer.concat([prefix, json]);
}

/** The header in front of a manifest, and the bytes that it takes. */
export function decodeHeader(bytes: Buffer): { readonly header: Header; readonly length: number } {
  if (bytes.byteLength < PREFIX_BYTES || !bytes.subarray(0, MAGIC.byteLength).equals(MAGIC))
    throw damaged("magic: this is no manifest", { fault: "wrong content", field: "magic" });
  const format = bytes.readUInt8(MAGIC.byteLength);
  if (format !== FORMAT) throw wrongField("format", `is ${format}, and this version reads ${FORMAT}`);
  const length = PREFIX_BYTES + bytes.readUInt32BE(MAGIC.byteLength + 1);
  if (length > Math.min(bytes.byteLength, MAX_HEADER_BYTES + PREFIX_BYTES))
    throw wrongField("header", "is longer than the manifest, or than a header may be");
  const header = shape.decode(parseJson(bytes.subarray(PREFIX_BYTES, length), "header"), "");
  const own = header.keys.filter(({ id }) => id === header.key);
  if (own.length !== 1) throw wrongField("key", "is not one of the keys");
  return { header, length };
}

export function parseJson(bytes: Buffer, field: string): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (cause) {
    throw damaged(`${field}: is not JSON`, { fault: "wrong field", field, cause });
  }
}
