import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
} from "node:fs";
import { type BytePath, showPath } from "./byte-path.ts";
import { DiffFailure } from "./failure.ts";

export type EntryType = "file" | "directory" | "symlink" | "fifo" | "socket" | "device";

/** What is at a path. */
export interface Entry {
  readonly type: EntryType;
  /** The number that a file keeps over snapshots and clones; after its end another file may get it. */
  readonly inode: bigint;
  /** Null if the filesystem does not record when a file was made. */
  readonly birthNs: bigint | null;
  readonly changedNs: bigint;
  readonly modifiedNs: bigint;
  /** Permission bits. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Which device, of a device. */
  readonly device: bigint;
  readonly sizeBytes: number;
  readonly links: number;
  readonly filesystem: bigint;
}

/** The files of one point, which do not change meanwhile. Links are never followed. */
export interface Tree {
  /** The filesystem that the root is on. */
  readonly filesystem: bigint;
  /** Null if nothing is there. The path must lead through directories only. */
  at(path: BytePath): Entry | null;
  /** The names in a directory, ordered. */
  names(path: BytePath): readonly string[];
  /** What a link says, byte by byte. */
  target(path: BytePath): string;
  /** A regular file, to be closed by disposing. */
  open(path: BytePath): Disposable & { readonly descriptor: number };
}

/** A file whose size is what it is, and nothing that waits for a writer or is another's file. */
const READ_ONLY = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export function openTree(root: string): Tree {
  const prefix = Buffer.from(root, "utf8").toString("latin1");
  const absolute = (path: BytePath): Buffer => Buffer.from(prefix + path, "latin1");
  const at = (path: BytePath): Entry | null => {
    const stats = reading(path, () => lstatSync(absolute(path), { bigint: true, throwIfNoEntry: false }));
    return stats === undefined ? null : toEntry(stats);
  };
  const top = at("");
  if (top?.type !== "directory") throw new DiffFailure("io", "the files are not there");
  return {
    filesystem: top.filesystem,
    at,
    names: (path) => reading(path, () => readdirSync(absolute(path), { encoding: "latin1" })).sort(byBytes),
    target: (path) => reading(path, () => readlinkSync(absolute(path), { encoding: "latin1" })),
    open: (path) =>
      reading(path, () => {
        const descriptor = openSync(absolute(path), READ_ONLY);
        if (!fstatSync(descriptor).isFile()) {
          closeSync(descriptor);
          throw new Error("it is no regular file");
        }
        return {
          descriptor,
          [Symbol.dispose]: () => {
            closeSync(descriptor);
          },
        };
      }),
  };
}

function byBytes(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function toEntry(stats: BigIntStats): Entry {
  const type = typeOf(stats);
  return {
    type,
    inode: stats.ino,
    // Filesystems without it return 0.
    birthNs: stats.birthtimeNs === 0n ? null : stats.birthtimeNs,
    changedNs: stats.ctimeNs,
    modifiedNs: stats.mtimeNs,
    mode: Number(stats.mode & 0o7777n),
    uid: Number(stats.uid),
    gid: Number(stats.gid),
    device: type === "device" ? stats.rdev : 0n,
    sizeBytes: type === "file" || type === "symlink" ? Number(stats.size) : 0,
    links: Number(stats.nlink),
    filesystem: stats.dev,
  };
}

function typeOf(stats: BigIntStats): EntryType {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "directory";
  if (stats.isSymbolicLink()) return "symlink";
  if (stats.isFIFO()) return "fifo";
  return stats.isSocket() ? "socket" : "device";
}

function reading<Result>(path: BytePath, read: () => Result): Result {
  try {
    return read();
  } catch (thrown) {
    const { code } = thrown as { readonly code?: unknown };
    if (code === "ENAMETOOLONG") throw new DiffFailure("limit", "has paths longer than the system can open");
    throw new DiffFailure(
      "io",
      `${showPath(path)} cannot be read: ${typeof code === "string" ? code : String(thrown)}`,
    );
  }
}
