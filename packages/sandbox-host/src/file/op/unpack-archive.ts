import type { ReadEntry } from "tar";
import { type EntryReader, readTarBody } from "../archive/tar-body.ts";
import { createUnpacking, type UnpackedFile, type Unpacking } from "../archive/unpacking.ts";
import { type FileFailure, refused, toFileFailure } from "../failure.ts";
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

/**
 * Unpacks the job's body, a tar archive, plain or by gzip, into a directory, which is made if it is missing. Absolute paths,
 * `..`, paths through links, hard links that lead out, devices and repeated names are refused when they are met; what was
 * unpacked before stays, and the failure says so. Nothing is made if the body is no archive. Owners are not taken over;
 * permissions are, except for set-user bits.
 */
export function unpackArchive(context: OperationContext, input: UnpackInput): UnpackOutput {
  using root = new UnpackRoot(context, input.path);
  const unpacker = new Unpacker(root, input);
  try {
    readTarBody(context.body(), unpacker);
    root.open();
  } catch (thrown) {
    const failed = toFileFailure(thrown, input.path);
    throw root.isMade ? failed.afterChanges() : failed;
  }
  return unpacker.output;
}

/** Unpacks entries one after another, until the first failure. */
class Unpacker implements EntryReader {
  readonly #root: UnpackRoot;
  readonly #input: UnpackInput;
  /** The names of all entries but directories. */
  readonly #seen = new Set<string>();
  #entries = 0;
  #bytes = 0;
  #failure: FileFailure | null = null;

  constructor(root: UnpackRoot, input: UnpackInput) {
    this.#root = root;
    this.#input = input;
  }

  get output(): UnpackOutput {
    return { entries: this.#entries, bytes: this.#bytes };
  }

  fail(failure: FileFailure): void {
    this.#failure ??= failure;
  }

  check(): void {
    if (this.#failure !== null) throw this.#failure;
  }

  read(entry: ReadEntry): void {
    let file: UnpackedFile | null = null;
    const close = (): void => {
      file?.[Symbol.dispose]();
      file = null;
    };
    const attempt = (work: () => void): void => {
      if (this.#failure !== null) return;
      try {
        work();
      } catch (thrown) {
        this.#failure = toFileFailure(thrown, entry.path);
        close();
      }
    };
    attempt(() => {
      file = this.#begin(entry);
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
      close();
    });
  }

  /** Makes the entry; returns the file that its content goes to, if it has any. */
  #begin(entry: ReadEntry): UnpackedFile | null {
    this.#count(entry);
    if (entry.type === "Directory") {
      this.#root.open().directory(entry);
      return null;
    }
    this.#refuseRepeated(entry);
    switch (entry.type) {
      case "File":
      case "OldFile":
      case "ContiguousFile":
        return this.#root.open().file(entry);
      case "SymbolicLink":
        this.#root.open().symlink(entry);
        return null;
      case "Link":
        this.#root.open().hardLink(entry);
        return null;
      default:
        throw refused(entry.path, `it is a ${entry.type}, only files, directories and links are taken`);
    }
  }

  #count({ size }: ReadEntry): void {
    const { path, maxBytes, maxEntries } = this.#input;
    this.#entries += 1;
    this.#bytes += size;
    if (this.#entries > maxEntries) throw refused(path, `the archive has more than ${maxEntries} entries`);
    if (this.#bytes > maxBytes) throw refused(path, `the archive unpacks to more than ${maxBytes} bytes`);
  }

  #refuseRepeated({ path }: ReadEntry): void {
    const name = path
      .split("/")
      .filter((one) => one !== "" && one !== ".")
      .join("/");
    if (this.#seen.has(name)) throw refused(path, "it comes twice in the archive");
    this.#seen.add(name);
  }
}

/** The directory that an archive is unpacked to, made when the first entry is. */
class UnpackRoot implements Disposable {
  readonly #context: OperationContext;
  readonly #path: string;
  #directory: Directory | undefined;
  #unpacking: Unpacking | undefined;

  constructor(context: OperationContext, path: string) {
    this.#context = context;
    this.#path = path;
  }

  get isMade(): boolean {
    return this.#directory !== undefined;
  }

  open(): Unpacking {
    if (this.#unpacking !== undefined) return this.#unpacking;
    makeParents(this.#context.walk, this.#path);
    makeDirectory(this.#context, { path: this.#path, parents: "make" });
    this.#directory = this.#context.walk.directory(this.#path);
    this.#unpacking = createUnpacking(this.#directory);
    return this.#unpacking;
  }

  [Symbol.dispose](): void {
    this.#directory?.[Symbol.dispose]();
  }
}
