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

/** One that its holder closes. */
export interface OwnedFile extends OpenFile, Disposable {}

/** Not in node's constants: a descriptor that only marks a place. */
const O_PATH = 0o10000000;
export const ENTER = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Opening a FIFO does not wait, a link is not followed. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
/** The sandbox makes these itself; what the session's files have there is not what is seen inside. */
export const NOT_FILES: ReadonlySet<BytePath> = new Set(["proc", "sys", "dev"]);

/** A regular file at a path of this machine that ends in a name of a held directory. */
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

/** What node:fs is given for a name in a directory. */
export function bytePath(directory: BytePath, name: BytePath): Buffer {
  return Buffer.from(`${directory}/${name}`, "latin1");
}

/** Closes it, once. */
export function closing(descriptor: number): () => void {
  let isOpen = true;
  return () => {
    if (!isOpen) return;
    isOpen = false;
    closeSync(descriptor);
  };
}
