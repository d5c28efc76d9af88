import { type Decoder, fields, hex, integer, list, oneOf, wrongField } from "../decode.ts";
import { FORMAT, MAX_PARTS, PART_BYTES, SALT_BYTES, TAG_BYTES } from "../format.ts";

/** A piece of an object: an object of the store of its own, under a key that its digest gives. */
export interface PartRecord {
  /** Of the encrypted bytes with their tag, as hex. */
  readonly sha256: string;
  readonly bytes: number;
}

/** Where a stream of bytes is in the store, and what is needed beside its data key to read it. Manifests hold these. */
export interface ObjectRecord {
  /** SHA-256 of all parts in their order, as they are stored. */
  readonly id: string;
  readonly format: typeof FORMAT;
  /** The id of the data key that it is encrypted under. */
  readonly key: string;
  readonly compression: "zstd";
  /** From which the key of this object is derived, as hex. */
  readonly salt: string;
  /** Compressed bytes of each part but the last one. */
  readonly partBytes: number;
  readonly plainBytes: number;
  /** Of all parts together, as they are stored. */
  readonly storedBytes: number;
  readonly parts: readonly PartRecord[];
}

/** Below this are all parts, in the order of their digests. */
export const PARTS_PREFIX = "v1/parts/";

export const partKey = (sha256: string): string => `${PARTS_PREFIX}${sha256.slice(0, 2)}/${sha256}`;

/** The digest in the key of a part, or undefined for any other key. */
export function digestOfPartKey(key: string): string | undefined {
  const digest = /\/([0-9a-f]{64})$/.exec(key)?.[1];
  return digest !== undefined && partKey(digest) === key ? digest : undefined;
}

const MAX_PART_BYTES = PART_BYTES + TAG_BYTES;

const part: Decoder<PartRecord> = fields<PartRecord>({
  sha256: hex(32),
  bytes: integer(TAG_BYTES + 1, MAX_PART_BYTES),
});

const shape: Decoder<ObjectRecord> = fields<ObjectRecord>({
  id: hex(32),
  format: oneOf(FORMAT),
  key: hex(16),
  compression: oneOf("zstd"),
  salt: hex(SALT_BYTES),
  partBytes: integer(1, PART_BYTES),
  plainBytes: integer(0),
  storedBytes: integer(TAG_BYTES + 1),
  parts: list(part, MAX_PARTS),
});

/** The fields, and that the sizes fit together: all parts but the last one are full, and their sum is right. */
export const objectRecord: Decoder<ObjectRecord> = {
  decode: (value, field) => {
    const record = shape.decode(value, field);
    const full = record.partBytes + TAG_BYTES;
    const last = record.parts.length - 1;
    if (last < 0) throw wrongField(`${field}.parts`, "is empty");
    for (const [index, { bytes }] of record.parts.entries()) {
      if (index < last ? bytes !== full : bytes > full)
        throw wrongField(`${field}.parts[${index}].bytes`, `does not fit parts of ${full} bytes`);
    }
    const sum = record.parts.reduce((total, { bytes }) => total + bytes, 0);
    if (sum !== record.storedBytes) throw wrongField(`${field}.storedBytes`, "is not the sum of the parts");
    return record;
  },
};
