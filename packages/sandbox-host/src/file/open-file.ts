import { closeSync, constants, fstatSync, openSync, type Stats } from "node:fs";
import { refused } from "./failure.ts";
import { type BytePath, toText } from "./path.ts";

/** A regular file, held for reading. */
export interface OpenFile {
  readonly descriptor: number;
  readonly path: BytePath;
  /** As it was when it was opened. */
  readonly stats: Stats;
}

/** A file that its holder closes. */
export interface OwnedFile extends OpenFile, Disposable {}

/** Not in node's constants: a descriptor that only names a directory. */
const O_PATH = 0o10000000;
export const ENTER = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** To open a FIFO does not block; a link is not followed. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
/** The sandbox mounts these itself: inside, the session's files at these paths are not visible. */
export const NOT_FILES: ReadonlySet<BytePath> = new Set(["proc", "sys", "dev"]);

/** Opens a regular file at a path of this machine that ends in a name of a held directory. */
export function openRegular(at: Buffer, path: BytePath): OwnedFile {
  const descriptor = openSync(at, READ);
  const release = closing(descriptor);
  try {
    const stats = fstatSync(descriptor);
    if (stats.isDirectory()) throw refused(toText(path), "it is a directory");
    if (!stats.isFile()) throw refused(toText(path), "it is no regular file");
    return { descriptor, path, stats, [Symbol.dispose]: release };
  } catch (thrown) {
    release();
    throw thrown;
  }
}

/** The argument of node:fs for a name in a directory. */
export function bytePath(directory: BytePath, name: BytePath): Buffer {
  return Buffer.from(`${directory}/${name}`, "latin1");
}

/** Returns what closes the descriptor; a second call does nothing. */
export function closing(descriptor: number): () => void {
  let isOpen = true;
  return () => {
    if (!isOpen) return;
    isOpen = false;
    closeSync(descriptor);
  };
}
