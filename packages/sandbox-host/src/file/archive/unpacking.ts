import {
  closeSync,
  constants,
  fchmodSync,
  fsyncSync,
  futimesSync,
  linkSync,
  mkdirSync,
  openSync,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import type { ReadEntry } from "tar";
import { statsIn } from "../entry.ts";
import { errnoCode, refused } from "../failure.ts";
import { type BytePath, MAX_NAME_BYTES, toBytes } from "../path.ts";
import type { Directory } from "../walk.ts";

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const PERMISSIONS = 0o777;
/** The most directories of a path. */
const MAX_DEPTH = 512;

/** A file that an entry's content is written to. */
export interface UnpackedFile extends Disposable {
  readonly descriptor: number;
  /** Sets the permissions and the time of the entry. */
  finish(): void;
}

/**
 * Makes the files of an archive's entries below a directory, and nothing elsewhere. No entry is written through a link, also
 * if the link was there before; what is at an entry's name is replaced, unless it is a directory.
 */
export interface Unpacking {
  directory(entry: ReadEntry): void;
  file(entry: ReadEntry): UnpackedFile;
  symlink(entry: ReadEntry): void;
  hardLink(entry: ReadEntry): void;
}

export function createUnpacking(root: Directory): Unpacking {
  const inParent = (entry: ReadEntry, make: (parent: Directory, name: BytePath) => void): void => {
    using target = targetOf(root, entry.path, "make");
    if (target.name === null) throw refused(entry.path, "it names the directory itself");
    giveWay(target.directory, target.name, entry.path);
    make(target.directory, target.name);
  };
  return {
    directory: (entry) => {
      using target = targetOf(root, entry.path, "make");
      if (target.name === null) return;
      mkdirIfMissing(target.directory, target.name);
      using _made = enterFor(target.directory, target.name, entry.path);
    },
    file: (entry) => {
      let descriptor = -1;
      inParent(entry, (parent, name) => {
        descriptor = openSync(parent.at(name), CREATE, 0o600);
      });
      return {
        descriptor,
        finish: () => {
          fchmodSync(descriptor, (entry.mode ?? 0o644) & PERMISSIONS);
          if (entry.mtime !== undefined) futimesSync(descriptor, entry.mtime, entry.mtime);
          fsyncSync(descriptor);
        },
        [Symbol.dispose]: () => {
          closeSync(descriptor);
        },
      };
    },
    symlink: (entry) => {
      inParent(entry, (parent, name) => {
        symlinkSync(Buffer.from(entry.linkpath ?? "", "utf8"), parent.at(name));
      });
    },
    hardLink: (entry) => {
      using source = targetOf(root, entry.linkpath ?? "", "expect");
      const { name } = source;
      if (name === null || statsIn(source.directory, name)?.isFile() !== true)
        throw refused(entry.path, "it is a hard link to what is no file of the archive");
      inParent(entry, (parent, own) => {
        linkSync(source.directory.at(name), parent.at(own));
      });
    },
  };
}

interface EntryTarget extends Disposable {
  readonly directory: Directory;
  /** Null if the path has no name in it. */
  readonly name: BytePath | null;
}

/** The names of an entry's path. Paths that could lead out are refused, not corrected. */
function namesOf(path: string): readonly BytePath[] {
  if (path.startsWith("/")) throw refused(path, "archives must have no absolute paths");
  if (path.includes("\0")) throw refused(path, "a path must have no NUL");
  const names = toBytes(path)
    .split("/")
    .filter((one) => one !== "" && one !== ".");
  if (names.includes("..")) throw refused(path, "it leads out of the archive");
  if (names.length > MAX_DEPTH || names.some((one) => one.length > MAX_NAME_BYTES))
    throw refused(path, "the path is too long");
  return names;
}

/** Goes down to an entry's directory, through real directories only; with `make`, missing ones are made. */
function targetOf(root: Directory, path: string, missing: "make" | "expect"): EntryTarget {
  const names = [...namesOf(path)];
  const name = names.pop() ?? null;
  let directory = root.enter(".");
  for (const one of names) {
    using parent = directory;
    if (missing === "make" && statsIn(parent, one) === null) mkdirIfMissing(parent, one);
    directory = enterFor(parent, one, path);
  }
  const end = directory;
  return {
    directory: end,
    name,
    [Symbol.dispose]: () => {
      end[Symbol.dispose]();
    },
  };
}

function enterFor(parent: Directory, name: BytePath, path: string): Directory {
  try {
    return parent.enter(name);
  } catch (thrown) {
    if (["ENOTDIR", "ELOOP"].includes(errnoCode(thrown)))
      throw refused(path, "it leads through a link, or through what is no directory");
    throw thrown;
  }
}

function mkdirIfMissing(parent: Directory, name: BytePath): void {
  try {
    mkdirSync(parent.at(name));
  } catch (thrown) {
    if (errnoCode(thrown) !== "EEXIST") throw thrown;
  }
}

function giveWay(parent: Directory, name: BytePath, path: string): void {
  const stats = statsIn(parent, name);
  if (stats === null) return;
  if (stats.isDirectory()) throw refused(path, "a directory is there");
  unlinkSync(parent.at(name));
}
