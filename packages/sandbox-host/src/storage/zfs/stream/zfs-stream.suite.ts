export const RECORD_BYTES = 312;
export const GUID = "13813687641499641902";
export const PARENT_GUID = "4808149999668121279";

/** A stream like those of `zfs send`: a record that begins it, content, and one with the checksum of all before it. */
export function zfsStream(content: Buffer, flags = 0): Buffer {
  const begin = Buffer.alloc(RECORD_BYTES);
  begin.writeBigUInt64LE(0x2f5bacbacn, 8);
  begin.writeUInt32LE(flags, 36);
  begin.writeBigUInt64LE(BigInt(GUID), 40);
  begin.writeBigUInt64LE(BigInt(PARENT_GUID), 48);
  begin.write("pool/sessions/t1/g2@s1", 56);
  const end = Buffer.alloc(RECORD_BYTES);
  end.writeUInt32LE(5, 0);
  for (const [index, sum] of fletcher4(Buffer.concat([begin, content])).entries())
    end.writeBigUInt64LE(sum, 8 + index * 8);
  return Buffer.concat([begin, content, end]);
}

export function fletcher4(bytes: Buffer): readonly bigint[] {
  const sums = [0n, 0n, 0n, 0n] as [bigint, bigint, bigint, bigint];
  for (let at = 0; at < bytes.length; at += 4) {
    sums[0] += BigInt(bytes.readUInt32LE(at));
    for (const index of [1, 2, 3] as const) sums[index] += sums[index - 1] ?? 0n;
  }
  return sums.map((sum) => BigInt.asUintN(64, sum));
}
