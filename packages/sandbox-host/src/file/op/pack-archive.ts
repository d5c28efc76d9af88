import { matchesGlob } from "node:path";
import { readlinkSync, readSync, type Stats } from "node:fs";
import { statsIn } from "../entry.ts";
import { errnoCode, invalidField, notFound } from "../failure.ts";
import { namesIn } from "../names.ts";
import type { OperationContext } from "../operation.ts";
import { toText } from "../path.ts";
import type { OpenFile } from "../open-file.ts";
import type { Directory } from "../walk.ts";
import { archiveHeader, BLOCK_BYTES, paddingOf } from "../archive/header.ts";

export interface PackInput {
  readonly path: string;
  /** Glob patterns for names, and for paths below the packed directory. */
  readonly excludes: readonly string[];
}

export interface PackOutput {
  readonly entries: number;
  readonly bytes: number;
}

/** More is refused: a file may claim a size that no disk can store. */
const MAX_BYTES = 64 * 1024 ** 3;
const MAX_ENTRIES = 2_000_000;
/** The most directories held at once on the way down. */
const MAX_DEPTH = 1024;
const SEND_BYTES = 256 * 1024;

/**
 * Sends a directory's content, or one file, as a tar archive. Links are packed as links; what is neither file, directory
 * nor link is left out. A file that shrinks meanwhile is filled up with zeros to the size in its header.
 */
export function packArchive({ walk, send }: OperationContext, { path, excludes }: PackInput): PackOutput {
  const out = createOutput(send);
  const packer = createPacker(out, excludes);
  using target = walk.find(path);
  const stats = statsIn(target.directory, target.name);
  if (stats === null) throw notFound(path);
  if (stats.isDirectory()) {
    using directory = walk.directory(path);
    packer.directory(directory, "", 0);
  } else packer.entry(target.directory, { name: target.name, inside: toText(target.name), stats });
  // Two empty blocks are the end.
  out.write(Buffer.alloc(2 * BLOCK_BYTES));
  out.flush();
  return packer.counts();
}

interface Output {
  write(bytes: Buffer): void;
  flush(): void;
}

/** Collects headers, which are small and many, into larger pieces. */
function createOutput(send: (bytes: Uint8Array) => void): Output {
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  const flush = (): void => {
    if (waitingBytes > 0) send(Buffer.concat(waiting));
    waiting = [];
    waitingBytes = 0;
  };
  return {
    flush,
    write: (bytes) => {
      waiting.push(bytes);
      waitingBytes += bytes.length;
      if (waitingBytes >= SEND_BYTES) flush();
    },
  };
}

interface Packed {
  readonly name: string;
  /** The path in the archive. */
  readonly inside: string;
  readonly stats: Stats;
}

function createPacker(out: Output, excludes: readonly string[]) {
  let entries = 0;
  let bytes = 0;
  const isExcluded = (name: string, inside: string): boolean =>
    excludes.some((pattern) => matchesGlob(name, pattern) || matchesGlob(inside, pattern));

  const count = (size: number): void => {
    entries += 1;
    bytes += size;
    if (entries > MAX_ENTRIES) throw invalidField("path", `must hold at most ${MAX_ENTRIES} entries`);
    if (bytes > MAX_BYTES) throw invalidField("path", `must hold at most ${MAX_BYTES} bytes`);
  };

  const file = (opened: OpenFile, inside: string): void => {
    count(opened.stats.size);
    out.write(archiveHeader({ path: inside, type: "File", stats: opened.stats, size: opened.stats.size }));
    copy(opened, out);
  };

  const entry = (directory: Directory, { name, inside, stats }: Packed): void => {
    if (stats.isFile()) {
      using opened = directory.open(name);
      file(opened, inside);
    } else if (stats.isSymbolicLink()) {
      count(0);
      const linkpath = readlinkSync(directory.at(name));
      out.write(archiveHeader({ path: inside, type: "SymbolicLink", stats, linkpath }));
    }
  };

  const directory = (held: Directory, prefix: string, depth: number): void => {
    if (depth > MAX_DEPTH) throw invalidField("path", `must not nest deeper than ${MAX_DEPTH} directories`);
    for (const name of [...namesIn(held)].sort()) {
      const inside = prefix + toText(name);
      if (isExcluded(toText(name), inside)) continue;
      whileThere(() => {
        const stats = statsIn(held, name);
        if (stats === null) return;
        if (!stats.isDirectory()) {
          entry(held, { name, inside, stats });
          return;
        }
        using inner = held.enter(name);
        count(0);
        out.write(archiveHeader({ path: `${inside}/`, type: "Directory", stats }));
        directory(inner, `${inside}/`, depth + 1);
      });
    }
  };

  return { directory, entry, counts: () => ({ entries, bytes }) };
}

/** Leaves out what is removed or replaced between two system calls, as if it had never been there. */
function whileThere(pack: () => void): void {
  try {
    pack();
  } catch (thrown) {
    if (!["ENOENT", "ENOTDIR", "ELOOP", "EINVAL", "ENXIO"].includes(errnoCode(thrown))) throw thrown;
  }
}

function copy({ descriptor, stats }: OpenFile, out: Output): void {
  let at = 0;
  while (at < stats.size) {
    const buffer = Buffer.allocUnsafe(Math.min(SEND_BYTES, stats.size - at));
    const got = readSync(descriptor, buffer, 0, buffer.length, at);
    // The file has shrunk.
    if (got === 0) buffer.fill(0);
    out.write(buffer.subarray(0, got === 0 ? buffer.length : got));
    at += got === 0 ? buffer.length : got;
  }
  out.write(paddingOf(stats.size));
}
