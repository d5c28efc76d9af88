import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  statSync,
  type Stats,
} from "node:fs";
import { SandboxError } from "@turnbox/client";
import { hasErrno } from "@turnbox/client/internal";
import { archiveHeader, END_OF_ARCHIVE, paddingOf } from "./archive-header.ts";
import type { Excludes } from "./excludes.ts";
import { type Anchor, type HeldDirectory, holdDirectory } from "./held-directory.ts";
import type { SyncCounter } from "./sync-counter.ts";

/** Opening a FIFO does not wait, a link is not followed. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const PIECE_BYTES = 256 * 1024;
const MAX_DEPTH = 256;
/** What goes away or becomes something else between two looks is left out, as if it had gone before. */
const CHANGED = ["ENOENT", "ENOTDIR", "ELOOP", "EINVAL", "ENXIO"] as const;

/** What is packed. */
export interface PackOptions {
  /** A directory that exists. */
  readonly root: string;
  readonly excludes: Excludes;
  /** Told of each file, and of what was left out. */
  readonly counter: SyncCounter;
  readonly signal?: AbortSignal | undefined;
  readonly anchor?: Anchor;
}

/** The content of a directory as a tar archive. Links are packed as links; sockets, pipes and devices are left out. */
export async function* packTree(options: PackOptions): AsyncGenerator<Uint8Array> {
  using root = holdDirectory(options.root, options.anchor);
  // So that also an empty directory is an archive with an entry, which some readers want.
  let waiting = [archiveHeader({ path: "./", type: "Directory", stats: statSync(root.self) })];
  let waitingBytes = 0;
  for (const bytes of packDirectory(root, "", options)) {
    waiting.push(bytes);
    waitingBytes += bytes.length;
    if (waitingBytes < PIECE_BYTES) continue;
    options.signal?.throwIfAborted();
    yield Buffer.concat(waiting);
    waiting = [];
    waitingBytes = 0;
  }
  yield Buffer.concat([...waiting, END_OF_ARCHIVE]);
}

function* packDirectory(held: HeldDirectory, prefix: string, options: PackOptions): Generator<Buffer> {
  if (prefix.split("/").length > MAX_DEPTH) {
    throw new SandboxError("QUOTA_EXCEEDED", `the sync was ended: it is more than ${MAX_DEPTH} directories deep`);
  }
  for (const name of readdirSync(held.self).sort()) {
    const path = prefix + name;
    if (options.excludes.covers(path)) continue;
    if (name.includes("\ufffd")) {
      options.counter.refuse(`${JSON.stringify(path)} is not taken over: its name is no UTF-8`);
      continue;
    }
    try {
      yield* packEntry(held, { name, path }, options);
    } catch (thrown) {
      if (hasErrno(thrown, ...CHANGED)) continue;
      if (!hasErrno(thrown, "EACCES", "EPERM")) throw thrown;
      options.counter.refuse(`${JSON.stringify(path)} is not taken over: it may not be read`);
    }
  }
}

interface Named {
  readonly name: string;
  readonly path: string;
}

function* packEntry(held: HeldDirectory, { name, path }: Named, options: PackOptions): Generator<Buffer> {
  const { counter } = options;
  const stats = lstatSync(held.at(name));
  if (stats.isDirectory()) {
    using inner = held.enter(name);
    counter.claim(0);
    yield archiveHeader({ path: `${path}/`, type: "Directory", stats });
    yield* packDirectory(inner, `${path}/`, options);
  } else if (stats.isSymbolicLink()) {
    const linkpath = readlinkSync(held.at(name));
    counter.claim(0);
    yield archiveHeader({ path, type: "SymbolicLink", stats, linkpath });
    counter.add(0);
  } else if (stats.isFile()) {
    yield* packFile(held.at(name), path, options);
  } else counter.refuse(`${JSON.stringify(path)} is not taken over: it is neither file, directory nor link`);
}

function* packFile(at: string, path: string, { counter }: PackOptions): Generator<Buffer> {
  const descriptor = openSync(at, READ);
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) return;
    counter.claim(stats.size);
    yield archiveHeader({ path, type: "File", stats, size: stats.size });
    yield* contentOf(descriptor, stats);
    counter.add(stats.size);
  } finally {
    closeSync(descriptor);
  }
}

/** As many bytes as the header says: a file that shrinks meanwhile is filled up with zeros. */
function* contentOf(descriptor: number, { size }: Stats): Generator<Buffer> {
  for (let at = 0; at < size; ) {
    const buffer = Buffer.alloc(Math.min(PIECE_BYTES, size - at));
    const got = readSync(descriptor, buffer, 0, buffer.length, at);
    const piece = got === 0 ? buffer : buffer.subarray(0, got);
    yield piece;
    at += piece.length;
  }
  yield paddingOf(size);
}
