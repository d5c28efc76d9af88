import { Parser, type ReadEntry } from "tar";
import { createUnpacking, type UnpackedFile, type Unpacking } from "../archive/unpacking.ts";
import { FileFailure, invalidField, refused, toFileFailure } from "../failure.ts";
import type { OperationContext } from "../operation.ts";
import type { Directory } from "../walk.ts";
import { makeParents, writeAll } from "../write-whole.ts";
import { makeDirectory } from "./make-directory.ts";

export interface UnpackOutput {
  readonly entries: number;
  readonly bytes: number;
}

export interface UnpackInput {
  readonly path: string;
  /** Bounds of what the archive may unpack to; the session's own space is another one. */
  readonly maxBytes: number;
  readonly maxEntries: number;
}

/** Bytes of an extended header. */
const MAX_META_BYTES = 1024 * 1024;
const GZIP = [0x1f, 0x8b];
/** More than this is a bomb: text comes to a tenth, rarely to a hundredth. */
const MAX_GZIP_RATIO = 200;
/** As many bytes as tell one compression from another. */
const MAGIC_BYTES = 4;
/** So much of a body is unpacked at once; gzip makes at most a thousand times as much of it. */
const SLICE_BYTES = 16 * 1024;
const NOT_TAKEN: readonly (readonly number[])[] = [
  [0x42, 0x5a, 0x68],
  [0xfd, 0x37, 0x7a],
  [0x28, 0xb5, 0x2f, 0xfd],
];

/**
 * Unpacks the job's body, a tar archive, plain or by gzip, into a directory, which is made where it is missing. Absolute paths, `..`,
 * ways through links, hard links out, devices and names that come twice are refused when they are met; what was unpacked
 * before stays, and the failure says so. Nothing is made for what is no archive. Owners are not taken over, permissions are, but for set-user bits.
 */
export function unpackArchive(context: OperationContext, { path, maxBytes, maxEntries }: UnpackInput): UnpackOutput {
  using target = new Target(context, path);
  const seen = new Set<string>();
  let entries = 0;
  let bytes = 0;
  let failure: FileFailure | null = null;

  const begin = (entry: ReadEntry): UnpackedFile | null => {
    entries += 1;
    bytes += entry.size;
    if (entries > maxEntries) throw refused(path, `the archive has more than ${maxEntries} entries`);
    if (bytes > maxBytes) throw refused(path, `the archive unpacks to more than ${maxBytes} bytes`);
    if (entry.type === "Directory") {
      target.open().directory(entry);
      return null;
    }
    const name = entry.path
      .split("/")
      .filter((one) => one !== "" && one !== ".")
      .join("/");
    if (seen.has(name)) throw refused(entry.path, "it comes twice in the archive");
    seen.add(name);
    switch (entry.type) {
      case "File":
      case "OldFile":
      case "ContiguousFile":
        return target.open().file(entry);
      case "SymbolicLink":
        target.open().symlink(entry);
        return null;
      case "Link":
        target.open().hardLink(entry);
        return null;
      default:
        throw refused(entry.path, `it is a ${entry.type}, only files, directories and links are taken`);
    }
  };

  const onReadEntry = (entry: ReadEntry): void => {
    let file: UnpackedFile | null = null;
    const attempt = (work: () => void): void => {
      if (failure !== null) return;
      try {
        work();
      } catch (thrown) {
        failure = toFileFailure(thrown, entry.path);
        file?.[Symbol.dispose]();
        file = null;
      }
    };
    attempt(() => {
      file = begin(entry);
    });
    entry.on("data", (piece) => {
      attempt(() => {
        if (file !== null) writeAll(file.descriptor, piece);
      });
    });
    entry.on("end", () => {
      attempt(() => {
        file?.finish();
      });
      file?.[Symbol.dispose]();
      file = null;
    });
  };

  const parser = new Parser({
    strict: true,
    maxMetaEntrySize: MAX_META_BYTES,
    brotli: false,
    zstd: false,
    maxDecompressionRatio: MAX_GZIP_RATIO,
    onReadEntry,
  });
  parser.on("error", (error: Error) => {
    failure ??= invalidField("data", `must be a tar archive: ${error.message}`);
  });
  // The parser works at once, in the call that gives it the bytes.
  try {
    feed(context.body(), parser, () => failure);
    target.open();
  } catch (thrown) {
    const failed = toFileFailure(thrown, path);
    throw target.isMade ? failed.afterChanges() : failed;
  }
  return { entries, bytes };
}

/** The directory that an archive is unpacked to, made when the first entry is. */
class Target implements Disposable {
  readonly #context: OperationContext;
  readonly #path: string;
  #root: Directory | undefined;
  #unpacking: Unpacking | undefined;

  constructor(context: OperationContext, path: string) {
    this.#context = context;
    this.#path = path;
  }

  get isMade(): boolean {
    return this.#root !== undefined;
  }

  open(): Unpacking {
    if (this.#unpacking !== undefined) return this.#unpacking;
    makeParents(this.#context.walk, this.#path);
    makeDirectory(this.#context, { path: this.#path, parents: "make" });
    this.#root = this.#context.walk.directory(this.#path);
    this.#unpacking = createUnpacking(this.#root);
    return this.#unpacking;
  }

  [Symbol.dispose](): void {
    this.#root?.[Symbol.dispose]();
  }
}

function feed(body: Iterable<Buffer>, parser: Parser, failureOf: () => FileFailure | null): void {
  let start = Buffer.alloc(0);
  let isKnown = false;
  const write = (bytes: Buffer): void => {
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
      parser.write(bytes.subarray(at, at + SLICE_BYTES));
      check();
    }
  };
  const check = (): void => {
    const failure = failureOf();
    if (failure !== null) throw failure;
  };
  for (const piece of body) {
    if (isKnown) {
      write(piece);
      continue;
    }
    // The first bytes tell what it is, and may come one by one.
    start = Buffer.concat([start, piece]);
    if (start.length < MAGIC_BYTES) continue;
    assertTaken(start);
    isKnown = true;
    write(start);
  }
  if (!isKnown) write(start);
  parser.end();
  check();
}

function assertTaken(start: Buffer): void {
  const begins = (magic: readonly number[]): boolean => magic.every((byte, at) => start[at] === byte);
  if (!begins(GZIP) && NOT_TAKEN.some(begins))
    throw invalidField("data", "must be a tar archive, plain or compressed by gzip");
}
