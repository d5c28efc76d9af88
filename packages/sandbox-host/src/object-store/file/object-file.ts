import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/**
 * An object as a file: one line that says what content follows, then the content. The line stands in front so that the etag and
 * the content change in one rename, and so that a list reads no contents.
 */

const MARK = "turnbox-object-1 ";
const LINE = /^turnbox-object-1 ([0-9a-f]{64})\n$/;

export const HEADER_BYTES = MARK.length + 64 + 1;

/** Keys never lead out of the directory: no link is followed, and nothing is waited for that a FIFO would never give. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export interface ObjectHeader {
  /** The SHA-256 of the content. */
  readonly etag: string;
  readonly bytes: number;
  readonly modifiedAtMs: number;
}

export interface OpenObject extends ObjectHeader {
  readonly handle: FileHandle;
}

/** A file is no object that this adapter has written. */
export class NotAnObject extends Error {
  override readonly name = "NotAnObject";
  readonly code = "NOT_AN_OBJECT";
}

/** What stands under a name is a folder of other keys, or no file at all. */
class NoFile extends Error {
  override readonly name = "NoFile";
  readonly code = "ENOENT";
}

export const headerLine = (sha256: string): Buffer => Buffer.from(`${MARK}${sha256}\n`);

/** Opens the file of an object; the caller closes the handle. */
export async function openObject(path: string): Promise<OpenObject> {
  const handle = await open(path, OPEN_FLAGS);
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw new NoFile("there is no file");
    const line = Buffer.alloc(HEADER_BYTES);
    const { bytesRead } = await handle.read(line, 0, HEADER_BYTES, 0);
    return { handle, ...parseHeader(line.subarray(0, bytesRead), stat) };
  } catch (thrown) {
    await handle.close();
    throw thrown;
  }
}

/** As `openObject`, in a thread that may wait, and without the content. */
export function readHeaderSync(path: string): ObjectHeader {
  const descriptor = openSync(path, OPEN_FLAGS);
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) throw new NoFile("there is no file");
    const line = Buffer.alloc(HEADER_BYTES);
    const bytesRead = readSync(descriptor, line, 0, HEADER_BYTES, 0);
    return parseHeader(line.subarray(0, bytesRead), stat);
  } finally {
    closeSync(descriptor);
  }
}

function parseHeader(
  line: Buffer,
  { size, mtimeMs }: { readonly size: number; readonly mtimeMs: number },
): ObjectHeader {
  const etag = LINE.exec(line.toString("latin1"))?.[1];
  if (etag === undefined) throw new NotAnObject("the file does not begin as objects do");
  return { etag, bytes: size - HEADER_BYTES, modifiedAtMs: Math.round(mtimeMs) };
}
