import { streamDamaged } from "../../names.ts";

/** Every record of a zfs stream begins with this many bytes; the first and the last are no longer. */
const RECORD_BYTES = 312;
const MAGIC = 0x2f5bacbacn;
const CLONE = 1;
const END_TYPE = 5;
const AT = { type: 0, magic: 8, flags: 36, toGuid: 40, fromGuid: 48, name: 56 } as const;
const END_CHECKSUM_AT = 8;
const WORD_BYTES = 4;

/** How a zfs stream begins: what it is of. */
export interface BegunStream {
  readonly guid: string;
  /** Null for a full stream. */
  readonly parentGuid: string | null;
  /** Whether its parent is on another dataset than it is; zfs makes a dataset of such a stream. */
  readonly isClone: boolean;
  readonly record: Buffer;
  /** What comes after the record. */
  readonly rest: AsyncIterable<Buffer>;
}

export async function readBegin(payloads: AsyncGenerator<Buffer, void, undefined>): Promise<BegunStream> {
  let held: Buffer = Buffer.alloc(0);
  while (held.length < RECORD_BYTES) {
    const next = await payloads.next();
    if (next.done === true) throw streamDamaged("it ends before it has begun");
    held = Buffer.concat([held, next.value]);
  }
  const record = held.subarray(0, RECORD_BYTES);
  if (record.readUInt32LE(AT.type) !== 0 || record.readBigUInt64LE(AT.magic) !== MAGIC)
    throw streamDamaged("it is no stream of zfs, or one of a machine of another byte order");
  const parentGuid = record.readBigUInt64LE(AT.fromGuid);
  return {
    guid: String(record.readBigUInt64LE(AT.toGuid)),
    parentGuid: parentGuid === 0n ? null : String(parentGuid),
    isClone: (record.readUInt32LE(AT.flags) & CLONE) !== 0,
    record,
    rest: prepended(held.subarray(RECORD_BYTES), payloads),
  };
}

/** The stream as it is. */
export async function* unchanged({ record, rest }: BegunStream): AsyncGenerator<Buffer, void, undefined> {
  yield record;
  yield* rest;
}

/**
 * The stream as that of a clone with another name. The checksum in its last record (Fletcher 4) covers the first one; it is
 * linear, so what a changed word adds to it follows from how many words come after.
 */
export async function* asClone({ record, rest }: BegunStream, name: string): AsyncGenerator<Buffer, void, undefined> {
  const begin = Buffer.from(record);
  begin.fill(0, AT.name);
  begin.write(name, AT.name, "latin1");
  begin.writeUInt32LE(record.readUInt32LE(AT.flags) | CLONE, AT.flags);
  yield begin;
  let bytes = RECORD_BYTES;
  let tail: Buffer = Buffer.alloc(0);
  for await (const chunk of rest) {
    bytes += chunk.length;
    tail = tail.length === 0 ? chunk : Buffer.concat([tail, chunk]);
    if (tail.length <= RECORD_BYTES) continue;
    yield tail.subarray(0, tail.length - RECORD_BYTES);
    tail = tail.subarray(tail.length - RECORD_BYTES);
  }
  if (tail.length < RECORD_BYTES || tail.readUInt32LE(AT.type) !== END_TYPE)
    throw streamDamaged("its last record is not the one that ends it");
  yield withChecksum(tail, { before: record, after: begin, words: (bytes - RECORD_BYTES) / WORD_BYTES });
}

/** The last record for a stream of so many words whose first record has been changed. */
function withChecksum(
  end: Buffer,
  { before, after, words }: { readonly before: Buffer; readonly after: Buffer; readonly words: number },
): Buffer {
  const changed = Buffer.from(end);
  for (let at = 0; at < RECORD_BYTES; at += WORD_BYTES) {
    const delta = BigInt(after.readUInt32LE(at)) - BigInt(before.readUInt32LE(at));
    if (delta === 0n) continue;
    const left = BigInt(words - at / WORD_BYTES);
    const weights = [1n, left, (left * (left + 1n)) / 2n, (left * (left + 1n) * (left + 2n)) / 6n];
    for (const [index, weight] of weights.entries()) {
      const sumAt = END_CHECKSUM_AT + index * 8;
      changed.writeBigUInt64LE(BigInt.asUintN(64, changed.readBigUInt64LE(sumAt) + delta * weight), sumAt);
    }
  }
  return changed;
}

async function* prepended(first: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  if (first.length > 0) yield first;
  yield* rest;
}
