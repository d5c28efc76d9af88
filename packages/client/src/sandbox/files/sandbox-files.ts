import type { CallOptions, KeyedOptions } from "../call.ts";

/** What is at a path. */
export type FileKind = "file" | "directory" | "symlink" | "other";

/** What is known of a file. */
export interface FileInfo {
  readonly name: string;
  readonly path: string;
  readonly kind: FileKind;
  readonly sizeBytes: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly modifiedAt: Date;
  readonly linkTarget: string | undefined;
}

/** Which part of a file. */
export interface ReadOptions extends CallOptions {
  readonly offset?: number;
  readonly limitBytes?: number;
}

/** How a file is written. */
export interface WriteOptions extends KeyedOptions {
  readonly mode?: number;
  /** Makes missing parents; on unless `false`. */
  readonly createDirectories?: boolean;
}

/** Something that happened to a file. `started`: the watch is in place. `overflow`: events were lost, look again. */
export interface FileEvent {
  readonly kind: "started" | "created" | "modified" | "removed" | "renamed" | "overflow";
  readonly path: string;
  readonly oldPath: string | undefined;
}

/** What a file is written from. An iterable is read once, so that a write of it is tried once. */
export type FileContent = string | Uint8Array | AsyncIterable<Uint8Array>;

/** The files of a sandbox. Relative paths begin in /workspace. */
export interface SandboxFiles {
  readText(path: string, options?: ReadOptions): Promise<string>;
  read(path: string, options?: ReadOptions): Promise<Uint8Array>;
  /** The bytes as they come; a stream that breaks goes on where it was, unless the file changed meanwhile. */
  readStream(path: string, options?: ReadOptions): AsyncIterable<Uint8Array>;
  /** Writes all of it or nothing. */
  write(path: string, content: FileContent, options?: WriteOptions): Promise<FileInfo>;
  stat(path: string, options?: CallOptions): Promise<FileInfo>;
  exists(path: string, options?: CallOptions): Promise<boolean>;
  list(path: string, options?: CallOptions): Promise<readonly FileInfo[]>;
  makeDirectory(path: string, options?: KeyedOptions & { readonly parents?: boolean }): Promise<FileInfo>;
  move(
    source: string,
    destination: string,
    options?: KeyedOptions & { readonly overwrite?: boolean },
  ): Promise<FileInfo>;
  remove(path: string, options?: KeyedOptions & { readonly recursive?: boolean }): Promise<void>;
  watch(path: string, options?: CallOptions & { readonly recursive?: boolean }): AsyncIterable<FileEvent>;
  /** Unpacks a tar archive at `path`. */
  upload(
    path: string,
    archive: AsyncIterable<Uint8Array>,
    options?: KeyedOptions,
  ): Promise<{ readonly entries: number; readonly bytes: number }>;
  /** A tar archive of what is at `path`. */
  download(path: string, options?: CallOptions & { readonly excludes?: readonly string[] }): AsyncIterable<Uint8Array>;
}
