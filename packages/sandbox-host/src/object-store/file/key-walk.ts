import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { hasErrno } from "@turnbox/core";

export interface KeyWalkOptions {
  readonly folder: string;
  readonly prefix: string;
  /** Only keys behind this one. */
  readonly after: string;
  readonly signal: AbortSignal;
}

/**
 * The keys below a folder in the order of their bytes. A folder is read as a name that ends with a slash, which is where its keys
 * stand among the files beside it: `a-b` comes before `a/b`, and `a/b` before `a0`.
 */
export async function* walkKeys(
  { folder, prefix, after, signal }: KeyWalkOptions,
  above = "",
): AsyncGenerator<string, void, undefined> {
  signal.throwIfAborted();
  const names = (await entriesOf(folder))
    .filter((entry) => entry.isFile() || entry.isDirectory())
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .sort((one, other) => (one < other ? -1 : 1));
  for (const name of names) {
    const path = `${above}${name}`;
    if (!name.endsWith("/")) {
      if (path > after && path.startsWith(prefix)) yield path;
    } else if (mayHold(path, { prefix, after })) {
      yield* walkKeys({ folder: join(folder, name), prefix, after, signal }, path);
    }
  }
}

/** Whether keys below a folder can have the prefix and stand behind `after`. */
function mayHold(path: string, { prefix, after }: { readonly prefix: string; readonly after: string }): boolean {
  const hasPrefix = path.startsWith(prefix) || prefix.startsWith(path);
  return hasPrefix && (path > after || after.startsWith(path));
}

async function entriesOf(folder: string): Promise<readonly Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (thrown) {
    // Its last object was removed since.
    if (hasErrno(thrown, "ENOENT")) return [];
    throw thrown;
  }
}
