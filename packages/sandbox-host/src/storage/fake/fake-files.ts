import { cp, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";

/** Copies a tree of plain files, directories and links. */
export async function copyFiles(from: string, to: string): Promise<void> {
  await cp(from, to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
}

/** The sizes of a tree's files by what tells two versions of a file apart. */
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
