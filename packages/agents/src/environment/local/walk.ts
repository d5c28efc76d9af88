import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { hasErrno } from "@turnbox/client/internal";

const MAX_WALKED = 100_000;

export interface Walked {
  /** From the top on, with slashes. */
  readonly relative: string;
  readonly dirent: Dirent;
}

/** Everything below a directory, in the order of names. Links are never followed; what goes away meanwhile is left out. */
export async function* walk(
  top: string,
  { depth, signal }: { readonly depth: number; readonly signal: AbortSignal },
): AsyncGenerator<Walked> {
  let walked = 0;
  async function* below(relative: string, level: number): AsyncGenerator<Walked> {
    for (const dirent of await entriesOf(join(top, relative), level)) {
      signal.throwIfAborted();
      walked += 1;
      if (walked > MAX_WALKED) return;
      const path = relative === "" ? dirent.name : `${relative}/${dirent.name}`;
      yield { relative: path, dirent };
      if (dirent.isDirectory() && level < depth) yield* below(path, level + 1);
    }
  }
  yield* below("", 1);
}

async function entriesOf(path: string, level: number): Promise<readonly Dirent[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  } catch (thrown) {
    if (level > 1 && hasErrno(thrown, "ENOENT", "ENOTDIR", "EACCES")) return [];
    throw thrown;
  }
}
