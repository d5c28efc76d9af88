import type { Stats } from "node:fs";
import { Header, type HeaderData, Pax } from "tar";

export const BLOCK_BYTES = 512;
const PERMISSIONS = 0o777;

/** The blocks before an entry's content, with an extended header if the short one has not enough room. */
export function archiveHeader(entry: {
  readonly path: string;
  readonly type: "File" | "Directory" | "SymbolicLink";
  readonly stats: Stats;
  readonly size?: number;
  readonly linkpath?: string;
}): Buffer {
  const { path, type, stats, size = 0, linkpath } = entry;
  const data: HeaderData = {
    path,
    type,
    mode: stats.mode & PERMISSIONS,
    uid: stats.uid,
    gid: stats.gid,
    size,
    mtime: new Date(Math.trunc(stats.mtimeMs / 1000) * 1000),
    ...(linkpath === undefined ? {} : { linkpath }),
  };
  const header = new Header(data);
  const block = Buffer.alloc(BLOCK_BYTES);
  if (!header.encode(block)) return block;
  return Buffer.concat([new Pax({ path, size, ...(linkpath === undefined ? {} : { linkpath }) }).encode(), block]);
}

/** The bytes that fill an entry's content up to whole blocks. */
export function paddingOf(size: number): Buffer {
  return Buffer.alloc((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES);
}
