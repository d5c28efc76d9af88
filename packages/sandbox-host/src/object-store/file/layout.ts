import { lstat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { hasErrno } from "@turnbox/core";

/**
 * The directory of a store:
 *
 * - `objects/`: the keys as paths, each object a file;
 * - `drafts/`: what puts are writing, on the same file system, so that a rename makes it an object;
 * - `lock.db`: an empty SQLite database, for its lock alone.
 */
export interface Layout {
  readonly root: string;
  readonly objects: string;
  readonly drafts: string;
  readonly lock: string;
}

export function layoutOf(root: string): Layout {
  return { root, objects: join(root, "objects"), drafts: join(root, "drafts"), lock: join(root, "lock.db") };
}

/** A folder on the way to an object is a link or no folder. */
export class NoFolder extends Error {
  override readonly name = "NoFolder";
  /** As the system would say it. */
  readonly code: "ELOOP" | "ENOTDIR";

  constructor(code: NoFolder["code"]) {
    super("a folder on the way to the object is none");
    this.code = code;
  }
}

export const pathOf = ({ objects }: Layout, key: string): string => join(objects, ...key.split("/"));

/** The folders between `objects/` and the file of a key, the outermost first. */
export function foldersOf({ objects }: Layout, key: string): readonly string[] {
  const folders: string[] = [];
  for (let at = dirname(join(objects, ...key.split("/"))); at !== objects; at = dirname(at)) folders.unshift(at);
  return folders;
}

/** Returns whether all folders on the way to an object are there. Throws if one of them is a link. */
export async function hasFolders(layout: Layout, key: string): Promise<boolean> {
  for (const folder of foldersOf(layout, key)) {
    try {
      const stat = await lstat(folder);
      if (stat.isSymbolicLink()) throw new NoFolder("ELOOP");
      if (!stat.isDirectory()) return false;
    } catch (thrown) {
      if (hasErrno(thrown, "ENOENT", "ENOTDIR")) return false;
      throw thrown;
    }
  }
  return true;
}
