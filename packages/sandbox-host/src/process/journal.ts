import { appendFile, type FileHandle, open, readdir, rename, rm, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { hasErrno, Mutex } from "@turnbox/core";
import { errnoCode } from "../file/failure.ts";

/** A piece of a journal, with the offset of its first byte. */
export interface JournalPiece {
  readonly data: Buffer;
  readonly offset: number;
}

/**
 * The output of one process: a file that the process itself appends to, and before it at most one segment of older bytes.
 * Offsets count from the first byte ever written. What is older than the segment is gone, and its count is not.
 */
export interface Journal {
  /** What the process appends to. */
  outputPath(): Promise<string>;
  /** Offsets of the oldest byte that is kept and of the next one to come. */
  extent(): Promise<{ readonly start: number; readonly end: number }>;
  /** Bytes that it takes on the disk, as of the last call. */
  readonly keptBytes: number;
  /** Bytes from the offset on, or from the oldest there is; none at the end. */
  read(offset: number, maxBytes: number): Promise<JournalPiece>;
  /** Adds output of a terminal; no process appends to such a journal. */
  append(data: Uint8Array): Promise<void>;
  /** Bytes in the file that the process appends to, which `rotate` empties. */
  liveBytes(): Promise<number>;
  /**
   * Makes the file empty again; its last `keepBytes` become the segment. Nothing may write while it does: the process is
   * stopped, and stays so over a crash until `recover` has ended what was begun.
   */
  rotate(keepBytes: number): Promise<void>;
  /** Ends a rotation that a crash cut off. */
  recover(): Promise<void>;
}

/** The file that a process appends to, in the directory of its journal. */
export const LOCAL_OUTPUT = "output";
const SEGMENT = /^segment-(\d+)$/;
const ROTATING = /^rotating-(\d+)$/;
const COPY_BYTES = 1024 * 1024;

interface Segment {
  readonly path: string;
  readonly offset: number;
  readonly bytes: number;
}

/** A journal whose files are in one directory. Its methods run one after the other. */
export class DirectoryJournal implements Journal {
  readonly #directory: string;
  readonly #outputPath: string;
  readonly #mutex = new Mutex();
  #segment: Segment | undefined;
  #keptBytes = 0;

  constructor(directory: string) {
    this.#directory = directory;
    this.#outputPath = join(directory, LOCAL_OUTPUT);
  }

  get keptBytes(): number {
    return this.#keptBytes;
  }

  async outputPath(): Promise<string> {
    return await Promise.resolve(this.#outputPath);
  }

  async extent(): Promise<{ readonly start: number; readonly end: number }> {
    return await this.#mutex.run(async () => {
      const end = this.#base() + (await this.#liveBytes());
      return { start: this.#segment?.offset ?? 0, end };
    });
  }

  async read(offset: number, maxBytes: number): Promise<JournalPiece> {
    return await this.#mutex.run(() => this.#read(offset, maxBytes));
  }

  async append(data: Uint8Array): Promise<void> {
    await this.#mutex.run(() => appendFile(this.#outputPath, data, { mode: 0o600 }));
  }

  async liveBytes(): Promise<number> {
    return await this.#mutex.run(() => this.#liveBytes());
  }

  async rotate(keepBytes: number): Promise<void> {
    await this.#mutex.run(() => this.#rotate(keepBytes));
  }

  async recover(): Promise<void> {
    await this.#mutex.run(() => this.#recover());
  }

  /** The offset of the first byte in the file that the process appends to. */
  #base(): number {
    return this.#segment === undefined ? 0 : this.#segment.offset + this.#segment.bytes;
  }

  async #liveBytes(): Promise<number> {
    const bytes = await sizeOf(this.#outputPath);
    this.#keptBytes = bytes + (this.#segment?.bytes ?? 0);
    return bytes;
  }

  async #read(offset: number, maxBytes: number): Promise<JournalPiece> {
    const from = Math.max(offset, this.#segment?.offset ?? 0);
    const base = this.#base();
    if (this.#segment !== undefined && from < base) {
      const position = from - this.#segment.offset;
      const data = await readPart(this.#segment.path, position, Math.min(maxBytes, base - from));
      if (data.length > 0) return { data, offset: from };
    }
    const at = Math.max(from, base);
    return { data: await readPart(this.#outputPath, at - base, maxBytes), offset: at };
  }

  async #rotate(keepBytes: number): Promise<void> {
    const live = await sizeOf(this.#outputPath);
    const end = this.#base() + live;
    const kept = Math.min(live, keepBytes);
    const draft = join(this.#directory, "segment.new");
    await rm(draft, { force: true });
    const bytes = await copyTail(this.#outputPath, draft, { from: live - kept, bytes: kept });
    const rotating = { path: join(this.#directory, `rotating-${end - bytes}`), offset: end - bytes, bytes };
    await rename(draft, rotating.path);
    await this.#finish(rotating);
  }

  /** The end of a rotation; each step may find its work done. */
  async #finish(rotating: Segment): Promise<void> {
    const older = this.#segment;
    await truncate(this.#outputPath, 0);
    const path = join(this.#directory, `segment-${rotating.offset}`);
    await rename(rotating.path, path);
    this.#segment = { ...rotating, path };
    if (older !== undefined && older.path !== path) await rm(older.path, { force: true });
  }

  async #recover(): Promise<void> {
    const names = await readdir(this.#directory).catch(() => []);
    const found = await Promise.all(names.map((name) => readSegment(this.#directory, name, SEGMENT)));
    // A crash between the last two steps leaves two; the newer one counts.
    const segments = found.filter((one) => one !== undefined).toSorted((a, b) => a.offset - b.offset);
    this.#segment = segments.at(-1);
    for (const old of segments.slice(0, -1)) await rm(old.path, { force: true });
    const begun = await Promise.all(names.map((name) => readSegment(this.#directory, name, ROTATING)));
    const [rotating] = begun.filter((one) => one !== undefined);
    if (rotating !== undefined) await this.#finish(rotating);
    await this.#liveBytes();
  }
}

async function readSegment(directory: string, name: string, rule: RegExp): Promise<Segment | undefined> {
  const [, offset] = rule.exec(name) ?? [];
  if (offset === undefined) return undefined;
  const path = join(directory, name);
  return { path, offset: Number(offset), bytes: await sizeOf(path) };
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (thrown) {
    if (hasErrno(thrown, "ENOENT")) return 0;
    throw thrown;
  }
}

async function readPart(path: string, position: number, maxBytes: number): Promise<Buffer> {
  let file: FileHandle;
  try {
    file = await open(path, "r");
  } catch (thrown) {
    if (hasErrno(thrown, "ENOENT")) return Buffer.alloc(0);
    throw thrown;
  }
  await using _open = file;
  const { size } = await file.stat();
  const length = Math.max(0, Math.min(maxBytes, size - position));
  const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, position);
  return buffer.subarray(0, bytesRead);
}

/** Copies the end of a file; returns the bytes copied. If there is no room for it, nothing is kept: 0. */
async function copyTail(
  from: string,
  to: string,
  part: { readonly from: number; readonly bytes: number },
): Promise<number> {
  await using target = await open(to, "w", 0o600);
  try {
    for (let done = 0; done < part.bytes; ) {
      const data = await readPart(from, part.from + done, Math.min(COPY_BYTES, part.bytes - done));
      await target.writeFile(data);
      done += data.length;
      if (data.length === 0) break;
    }
    return (await target.stat()).size;
  } catch (thrown) {
    if (!["ENOSPC", "EDQUOT"].includes(errnoCode(thrown))) throw thrown;
    await target.truncate(0);
    return 0;
  }
}
