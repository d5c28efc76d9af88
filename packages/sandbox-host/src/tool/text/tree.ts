import { type Dirent, readdirSync } from "node:fs";
import { errnoCode } from "../../file/failure.ts";
import { type Directory, joinPath } from "../../file/walk.ts";
import type { BytePath } from "../../file/path.ts";

export type EntryKind = "file" | "directory" | "link" | "other";

/** Something in a tree that is walked, with the directory that holds it. Valid until the next one is taken. */
export interface TreeEntry {
  readonly kind: EntryKind;
  readonly name: BytePath;
  /** The path from the top of the walk. */
  readonly relative: BytePath;
  readonly parent: Directory;
}

/** Deeper directories are not entered: each one on the way is held open. */
const MAX_DEPTH = 200;

/**
 * Everything below a directory, in the order of names, a directory before what is in it. Links are never followed.
 * `enters` chooses the directories that are entered. What is removed meanwhile is left out.
 */
export function* treeOf(
  top: Directory,
  enters: (entry: TreeEntry) => boolean,
  below: { readonly relative: BytePath; readonly depth: number } = { relative: "", depth: 0 },
): Generator<TreeEntry> {
  for (const { name, kind } of listing(top)) {
    const entry = { kind, name, relative: below.relative === "" ? name : joinPath(below.relative, name), parent: top };
    yield entry;
    if (kind !== "directory" || below.depth >= MAX_DEPTH || !enters(entry)) continue;
    const inner = orGone(() => top.enter(name));
    if (inner === null) continue;
    using held = inner;
    yield* treeOf(held, enters, { relative: entry.relative, depth: below.depth + 1 });
  }
}

/** What a directory holds, in the order of names. */
export function listing(directory: Directory): readonly { readonly name: BytePath; readonly kind: EntryKind }[] {
  const entries = orGone(() => readdirSync(directory.self, { withFileTypes: true, encoding: "buffer" })) ?? [];
  return entries
    .map((entry) => ({ name: entry.name.toString("latin1"), kind: kindOf(entry) }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

const GONE = ["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "ENXIO"];

/** Null if the entry was removed or changed since it was listed. */
export function orGone<Value>(look: () => Value): Value | null {
  try {
    return look();
  } catch (thrown) {
    if (GONE.includes(errnoCode(thrown))) return null;
    throw thrown;
  }
}

function kindOf(entry: Dirent<Buffer>): EntryKind {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "directory";
  return entry.isSymbolicLink() ? "link" : "other";
}

export function isHidden(name: BytePath): boolean {
  return name.startsWith(".");
}
