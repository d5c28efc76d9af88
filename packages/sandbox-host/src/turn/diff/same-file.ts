import type { BytePath } from "./byte-path.ts";
import { sharesMost } from "./content.ts";
import type { Entry, Tree } from "./tree.ts";

/** Something in one of the trees. */
export interface Located {
  readonly tree: Tree;
  readonly path: BytePath;
  readonly entry: Entry;
}

/** How many children of a directory are looked at, and how many are read. */
const CHILDREN_TRIED = 256;
const CHILDREN_READ = 16;

/**
 * Whether two entries of the same inode and type are one file at two times, and not two files of which the later got the
 * number of the earlier: that happens as soon as a filesystem was mounted again. The time of birth decides it. If
 * the filesystem has none, what they have in common does; times that programs can set count only if there is nothing else.
 */
export function isSameFile(before: Located, after: Located, tick: () => void): boolean {
  const [a, b] = [before.entry, after.entry];
  if (a.birthNs !== null && b.birthNs !== null) return a.birthNs === b.birthNs;
  switch (b.type) {
    case "file":
      if (a.sizeBytes === 0 && b.sizeBytes === 0) return a.modifiedNs === b.modifiedNs;
      return sharesMost({ ...before, sizeBytes: a.sizeBytes }, { ...after, sizeBytes: b.sizeBytes }, tick);
    case "symlink":
      return before.tree.target(before.path) === after.tree.target(after.path);
    case "directory":
      return sharesChildren(before, after, tick);
    case "fifo":
    case "socket":
    case "device":
      return a.modifiedNs === b.modifiedNs && a.device === b.device;
  }
}

/** Whether something in it is the same, at best untouched; two empty directories are compared by their times. */
function sharesChildren(before: Located, after: Located, tick: () => void): boolean {
  const names = new Set(before.tree.names(before.path));
  const later = after.tree.names(after.path);
  if (names.size === 0 && later.length === 0) return before.entry.modifiedNs === after.entry.modifiedNs;
  const touched: (readonly [Located, Located])[] = [];
  for (const name of later.filter((one) => names.has(one)).slice(0, CHILDREN_TRIED)) {
    tick();
    const [a, b] = [childOf(before, name), childOf(after, name)];
    if (a === null || b === null) continue;
    if (a.entry.inode !== b.entry.inode || a.entry.type !== b.entry.type) continue;
    if (a.entry.changedNs === b.entry.changedNs) return true;
    touched.push([a, b]);
  }
  const readable = touched.filter(([, { entry }]) => entry.type === "file" || entry.type === "symlink");
  return readable.slice(0, CHILDREN_READ).some(([a, b]) => isSameFile(a, b, tick));
}

function childOf({ tree, path }: Located, name: string): Located | null {
  const entry = tree.at(`${path}/${name}`);
  return entry === null ? null : { tree, path: `${path}/${name}`, entry };
}
