import type { BytePath } from "./byte-path.ts";
import { assertNamesKnown, childrenOf, type Comparison, kindOf, type NewEntry, type Side } from "./comparison.ts";
import { isSameFile } from "./same-file.ts";

/**
 * Finds the origin of the new entries: moved with their directory, moved from another path, or new. What has been found is
 * taken out of `gone`. Directories come first, so that what is in a renamed one belongs to it, whatever other names
 * its files have; then what kept its name in a renamed directory; then the rest, by inode, each old path at most once.
 */
export function resolveNew(comparison: Comparison): void {
  const byInode = pathsByInode(comparison);
  const files: NewEntry[] = [];
  const enter = (entry: NewEntry): void => {
    if (entry.entry.type !== "directory") {
      files.push(entry);
      return;
    }
    const former = settle(comparison, entry, byInode);
    for (const child of childrenOf(comparison, "to", entry))
      enter(former === null ? child : { ...child, formerPath: `${former}${child.path.slice(entry.path.length)}` });
  };
  for (const entry of comparison.fresh.sort((a, b) => (a.path < b.path ? -1 : 1))) enter(entry);
  const moved = ({ formerPath }: NewEntry): boolean => formerPath !== undefined && comparison.gone.has(formerPath);
  const rest = files.filter((entry) => !moved(entry));
  for (const entry of files.filter(moved)) settle(comparison, entry, byInode);
  for (const entry of rest) settle(comparison, entry, byInode);
}

/** Reports one new entry. Returns the path that a directory had before; null if it is not an old one. */
function settle(
  comparison: Comparison,
  { path, entry, formerPath }: NewEntry,
  byInode: ReadonlyMap<bigint, readonly BytePath[]>,
): BytePath | null {
  const to = { path, entry };
  const former = formerPath === undefined ? null : take(comparison, formerPath);
  if (former !== null) {
    const kind = kindOf(comparison, former, to);
    if (kind !== null) comparison.report({ kind, from: former, to });
    return kind === "type-changed" ? null : former.path;
  }
  const from = findOrigin(comparison, to, byInode);
  if (from !== null) assertNamesKnown(comparison, from, to);
  comparison.report({ kind: from === null ? "added" : "renamed", from, to });
  return from?.path ?? null;
}

function findOrigin(comparison: Comparison, to: Side, byInode: ReadonlyMap<bigint, readonly BytePath[]>): Side | null {
  const { trees, gone, tick } = comparison;
  for (const path of byInode.get(to.entry.inode) ?? []) {
    const entry = gone.get(path);
    if (entry?.type !== to.entry.type) continue;
    if (isSameFile({ tree: trees.from, path, entry }, { tree: trees.to, ...to }, tick)) return take(comparison, path);
  }
  return null;
}

function take({ gone }: Comparison, path: BytePath): Side | null {
  const entry = gone.get(path);
  if (entry === undefined) return null;
  gone.delete(path);
  return { path, entry };
}

function pathsByInode({ gone }: Comparison): ReadonlyMap<bigint, readonly BytePath[]> {
  const paths = new Map<bigint, BytePath[]>();
  for (const [path, { inode }] of gone) {
    const known = paths.get(inode);
    if (known === undefined) paths.set(inode, [path]);
    else known.push(path);
  }
  for (const list of paths.values()) list.sort();
  return paths;
}
