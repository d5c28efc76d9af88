import type { Stats } from "node:fs";
import { Header, type HeaderData, Pax } from "tar";

const BLOCK_BYTES = 512;
const PERMISSIONS = 0o777;

/** Two empty blocks. */
export const END_OF_ARCHIVE = Buffer.alloc(2 * BLOCK_BYTES);

export interface ArchiveEntry {
  readonly path: string;
  readonly type: "File" | "Directory" | "SymbolicLink";
  readonly stats: Stats;
  readonly size?: number;
  readonly linkpath?: string;
}

/** The blocks before an entry's content. Owners are left out: the runtime has users of its own. */
export function archiveHeader({ path, type, stats, size = 0, linkpath }: ArchiveEntry): Buffer {
  const link = linkpath === undefined ? {} : { linkpath };
  const mtime = new Date(Math.trunc(stats.mtimeMs / 1000) * 1000);
  const data: HeaderData = { path, type, mode: stats.mode & PERMISSIONS, uid: 0, gid: 0, size, mtime, ...link };
  const block = Buffer.alloc(BLOCK_BYTES);
  const isTooShort = new Header(data).encode(block);
  return isTooShort ? Buffer.concat([new Pax({ path, size, ...link }).encode(), block]) : block;
}

/** What fills an entry's content up to whole blocks. */
export function paddingOf(size: number): Buffer {
  return Buffer.alloc((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES);
}
