import { chmod, cp, lstat, mkdir, readdir, readFile, readlink, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Copies a tree of plain files, directories and links, with their modes and times. */
export async function copyFiles(from: string, to: string): Promise<void> {
  await cp(from, to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
  for (const name of ["", ...(await readdir(from, { recursive: true }))]) {
    const found = await lstat(join(from, name));
    if (found.isSymbolicLink()) continue;
    await chmod(join(to, name), found.mode);
    await utimes(join(to, name), found.atime, found.mtime);
  }
}

/** What differs between two versions of a tree: names, types, modes, times and content, directories included. */
export async function describeFiles(directory: string): Promise<readonly string[]> {
  const names = ["", ...(await readdir(directory, { recursive: true }))].sort();
  return await Promise.all(
    names.map(async (name) => {
      const path = join(directory, name);
      const found = await lstat(path);
      if (found.isSymbolicLink()) return `${name}\0${await readlink(path)}`;
      const content = found.isFile() ? await readFile(path, "base64") : "";
      return [name, found.mode, Math.round(found.mtimeMs), content].join("\0");
    }),
  );
}

/** The sizes of a tree's files by what differs between two versions of a file. */
export async function filesOf(directory: string): Promise<ReadonlyMap<string, number>> {
  const files = new Map<string, number>();
  for (const name of await readdir(directory, { recursive: true })) {
    const { size, mtimeMs } = await lstat(join(directory, name));
    files.set(`${name}\0${size}\0${Math.round(mtimeMs)}`, size);
  }
  return files;
}

/** Bytes of files that are in one of the trees and in none of the others. */
export function bytesOnlyIn(
  trees: readonly ReadonlyMap<string, number>[],
  others: readonly ReadonlyMap<string, number>[],
): number {
  const own = new Map(trees.flatMap((tree) => [...tree]));
  return [...own].filter(([key]) => !others.some((other) => other.has(key))).reduce((sum, [, bytes]) => sum + bytes, 0);
}

/** A file, a directory or a link of a tree. */
export interface PackedFile {
  readonly name: string;
  readonly kind: "file" | "directory" | "link";
  readonly mode: number;
  readonly mtimeMs: number;
  /** In base64; the target of a link. */
  readonly content: string;
}

/** The tree as data, directories before what is in them. */
export async function packFiles(directory: string): Promise<readonly PackedFile[]> {
  const names = ["", ...(await readdir(directory, { recursive: true })).sort()];
  return await Promise.all(
    names.map(async (name) => {
      const path = join(directory, name);
      const found = await lstat(path);
      const { mode, mtimeMs } = found;
      if (found.isSymbolicLink()) return { name, kind: "link", mode, mtimeMs, content: await readlink(path) };
      if (found.isDirectory()) return { name, kind: "directory", mode, mtimeMs, content: "" };
      return { name, kind: "file", mode, mtimeMs, content: await readFile(path, "base64") };
    }),
  );
}

/** Makes the tree again in an empty directory. */
export async function unpackFiles(files: readonly PackedFile[], directory: string): Promise<void> {
  for (const { name, kind, content } of files) {
    const path = join(directory, name);
    if (kind === "directory") await mkdir(path, { recursive: true });
    else if (kind === "link") await symlink(content, path);
    else await writeFile(path, content, "base64");
  }
  // Modes and times of directories last: what is made in them changes both.
  for (const { name, kind, mode, mtimeMs } of files.toReversed()) {
    if (kind === "link") continue;
    await chmod(join(directory, name), mode);
    await utimes(join(directory, name), mtimeMs / 1000, mtimeMs / 1000);
  }
}
