import { SandboxError } from "@turnbox/client";
import { errnoOf, hasErrno } from "@turnbox/client/internal";
import { Parser, type ReadEntry } from "tar";
import { parseEntryPath, refusedEntry } from "./entry-path.ts";
import type { Excludes } from "./excludes.ts";
import type { Anchor } from "./held-directory.ts";
import type { SyncCounter } from "./sync-counter.ts";
import { createTreeWriter, type FileDraft, type TreeWriter } from "./tree-writer.ts";

/** Where an archive is unpacked to. */
export interface UnpackOptions {
  /** A directory that exists. */
  readonly root: string;
  readonly excludes: Excludes;
  /** Told of each file, and of what was left out; it has the limits. */
  readonly counter: SyncCounter;
  readonly signal?: AbortSignal;
  readonly anchor?: Anchor;
}

const MAX_META_BYTES = 1024 * 1024;
const SLICE_BYTES = 64 * 1024;
/** As many bytes as identify a compressed archive. */
const MAGIC_BYTES = 4;
const USUAL_MODE = 0o644;

/**
 * Unpacks a foreign tar archive below a directory. Entries that must not be taken over are left out and told to
 * the counter: absolute paths, `..`, ways through links, links that point out, hard links, devices, names that cannot be
 * shown. An archive that is damaged or beyond the limits is refused where that is met; what came before stays.
 */
export async function unpackTree(archive: AsyncIterable<Uint8Array>, options: UnpackOptions): Promise<void> {
  const { root, excludes, counter, signal, anchor } = options;
  using writer = createTreeWriter(root, anchor);
  using state = createState(counter);
  const parser = new Parser({
    strict: true,
    maxMetaEntrySize: MAX_META_BYTES,
    brotli: false,
    zstd: false,
    onReadEntry: (entry) => {
      takeEntry(entry, { writer, excludes, state });
    },
  });
  parser.on("error", (cause: Error) => {
    state.fail(damaged(cause.message, cause));
  });
  let isEmpty = true;
  for await (const slice of slicesOf(archive)) {
    signal?.throwIfAborted();
    isEmpty &&= slice.every((byte) => byte === 0);
    // The parser works at once, in the call that gives it the bytes.
    parser.write(slice);
    state.check();
  }
  // The parser takes the end of an archive that has nothing before it for none.
  if (isEmpty) return;
  parser.end();
  state.check();
}

interface State extends Disposable {
  readonly counter: SyncCounter;
  /** The file that is being written. */
  draft: FileDraft | undefined;
  fail(failure: unknown): void;
  /** Throws what failed. */
  check(): void;
  readonly hasFailed: boolean;
}

function createState(counter: SyncCounter): State {
  let failure: unknown;
  return {
    counter,
    draft: undefined,
    fail: (thrown) => {
      failure ??= thrown;
    },
    check: () => {
      if (failure !== undefined) throw SandboxError.from(failure);
    },
    get hasFailed() {
      return failure !== undefined;
    },
    [Symbol.dispose]() {
      this.draft?.[Symbol.dispose]();
      this.draft = undefined;
    },
  };
}

interface Taking {
  readonly writer: TreeWriter;
  readonly excludes: Excludes;
  readonly state: State;
}

function takeEntry(entry: ReadEntry, { writer, excludes, state }: Taking): void {
  const attempt = (work: () => void): void => {
    if (state.hasFailed) return;
    try {
      work();
    } catch (thrown) {
      state[Symbol.dispose]();
      if (!isOfTheEntry(thrown)) state.fail(thrown);
      else state.counter.refuse(entryMessage(entry.path, thrown));
    }
  };
  attempt(() => {
    state.counter.claim(entry.size);
    state.draft = begin(entry, { writer, excludes, state });
  });
  entry.on("data", (bytes) => {
    attempt(() => {
      state.draft?.write(bytes);
    });
  });
  entry.on("end", () => {
    attempt(() => {
      if (state.draft === undefined) return;
      state.draft.finish({ mode: entry.mode ?? USUAL_MODE, modifiedAt: entry.mtime });
      state[Symbol.dispose]();
      state.counter.add(entry.size);
    });
  });
}

/** Makes what the entry says; a file is returned, to be filled. */
function begin(entry: ReadEntry, { writer, excludes, state }: Taking): FileDraft | undefined {
  const names = parseEntryPath(entry.path);
  if (excludes.covers(names.join("/"))) return undefined;
  if (entry.type === "Directory") {
    writer.directory(names);
    return undefined;
  }
  if (names.length === 0) throw refusedEntry(entry.path, "it names the directory itself");
  switch (entry.type) {
    case "File":
    case "OldFile":
    case "ContiguousFile":
      return writer.file(names);
    case "SymbolicLink":
      writer.symlink(names, entry.linkpath ?? "");
      state.counter.add(0);
      return undefined;
    default:
      throw refusedEntry(entry.path, `it is a ${entry.type}; only files, directories and links are`);
  }
}

/** What concerns one entry and leaves the others possible. */
function isOfTheEntry(thrown: unknown): boolean {
  if (thrown instanceof SandboxError) return thrown.reason === "PATH_REFUSED";
  return hasErrno(thrown, "EACCES", "EPERM", "EISDIR", "ENOTDIR", "ELOOP", "ENAMETOOLONG", "EEXIST", "ENOENT");
}

const entryMessage = (path: string, thrown: unknown): string =>
  thrown instanceof SandboxError ? thrown.message : refusedEntry(path, errnoOf(thrown) ?? "it failed").message;

const damaged = (why: string, cause?: unknown): SandboxError =>
  new SandboxError("INVALID_ARGUMENT", `the archive is damaged: ${why}`, { cause });

/** Small pieces, so that bounds hold between them; compressed archives are refused before anything is unpacked. */
async function* slicesOf(archive: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let start: Buffer | undefined = Buffer.alloc(0);
  for await (const piece of archive) {
    let bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    if (start !== undefined) {
      bytes = start = Buffer.concat([start, bytes]);
      if (start.length < MAGIC_BYTES) continue;
      assertPlain(start);
      start = undefined;
    }
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) yield bytes.subarray(at, at + SLICE_BYTES);
  }
  if (start !== undefined && start.length > 0) throw damaged("it ends in its first bytes");
}

function assertPlain(start: Buffer): void {
  const magics = [
    [0x1f, 0x8b],
    [0x28, 0xb5, 0x2f, 0xfd],
  ];
  if (magics.some((magic) => magic.every((byte, at) => start[at] === byte))) throw damaged("it is compressed");
}
