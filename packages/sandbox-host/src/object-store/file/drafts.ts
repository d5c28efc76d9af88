import { createHash } from "node:crypto";
import { type FileHandle, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { hasErrno, randomToken } from "@turnbox/core";
import { HEADER_BYTES, headerLine } from "./object-file.ts";

/** A put writes its draft all the time; one that was not written to for so long has no process any more. */
const LEFT_AFTER_MS = 24 * 60 * 60 * 1000;

/** A complete file that is no object yet. */
export interface Draft {
  readonly path: string;
  readonly etag: string;
  readonly bytes: number;
}

/** The files that puts write before they are objects. */
export class Drafts {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Writes a synced file. If the chunks fail, it is removed. */
  async write(chunks: AsyncIterable<Uint8Array>): Promise<Draft> {
    const path = join(this.#folder, randomToken(24));
    try {
      return { path, ...(await writeTo(path, chunks)) };
    } catch (thrown) {
      await this.remove(path);
      throw thrown;
    }
  }

  /** Removes a draft; one that has become an object has no file here. */
  async remove(path: string): Promise<void> {
    await rm(path, { force: true });
  }

  /** Removes what crashed processes have left. */
  async removeLeft(nowMs: number): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      const modifiedAtMs = await modificationOf(path);
      if (modifiedAtMs !== undefined && nowMs - modifiedAtMs > LEFT_AFTER_MS) await this.remove(path);
    }
  }
}

async function writeTo(path: string, chunks: AsyncIterable<Uint8Array>): Promise<Omit<Draft, "path">> {
  await using file = await open(path, "wx", 0o600);
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of chunks) {
    hash.update(chunk);
    await writeAll(file, chunk, HEADER_BYTES + bytes);
    bytes += chunk.byteLength;
  }
  const etag = hash.digest("hex");
  await writeAll(file, headerLine(etag), 0);
  await file.sync();
  return { etag, bytes };
}

/** A file system that becomes full writes a part of what it gets, and fails only at the next write. */
async function writeAll(file: FileHandle, content: Uint8Array, position: number): Promise<void> {
  for (let written = 0; written < content.byteLength; ) {
    const { bytesWritten } = await file.write(content, written, content.byteLength - written, position + written);
    written += bytesWritten;
  }
}

async function modificationOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (thrown) {
    if (hasErrno(thrown, "ENOENT")) return undefined;
    throw thrown;
  }
}
