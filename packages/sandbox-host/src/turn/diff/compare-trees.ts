import type { BytePath } from "./byte-path.ts";
import {
  assertOneFilesystem,
  childrenOf,
  type CompareOptions,
  type Comparison,
  type Difference,
  kindOf,
  NamesMissing,
  type Side,
  type Trees,
} from "./comparison.ts";
import { DiffFailure } from "./failure.ts";
import { resolveNew } from "./resolve-new.ts";
import { EVERYTHING } from "./scope.ts";
import type { Entry, Tree } from "./tree.ts";

/**
 * What differs between two trees, ordered by the bytes of the paths. The result is the same for every scope that holds at
 * least all that differs. Times alone, and what is in a directory, do not make it different.
 */
export function compareTrees(trees: Trees, options: CompareOptions): readonly Difference[] {
  try {
    return compareWithin(trees, options);
  } catch (thrown) {
    if (thrown instanceof NamesMissing) return compareWithin(trees, { ...options, scope: EVERYTHING });
    throw thrown;
  }
}

function compareWithin(trees: Trees, options: CompareOptions): readonly Difference[] {
  const differences: Difference[] = [];
  let entries = 0;
  const comparison: Comparison = {
    ...options,
    trees,
    completeness: options.scope === EVERYTHING ? "everything" : "candidates",
    gone: new Map(),
    fresh: [],
    report: (difference) => {
      if (differences.push(difference) > options.maxChanges)
        throw new DiffFailure("limit", `has more than ${options.maxChanges} changes`);
    },
    look: (tree, path) => {
      options.tick();
      entries += 1;
      if (entries > 2 * options.maxEntries)
        throw new DiffFailure("limit", `has more than ${options.maxEntries} entries`);
      return tree.at(path);
    },
  };
  compareFrom(comparison, options.path);
  resolveNew(comparison);
  for (const [path, entry] of comparison.gone) comparison.report({ kind: "removed", from: { path, entry }, to: null });
  return differences.sort((a, b) => (pathOf(a) < pathOf(b) ? -1 : 1));
}

/** The path that a difference is listed under. */
export function pathOf({ from, to }: Difference): BytePath {
  return (to ?? from)?.path ?? "";
}

/** If a component above the path is no directory, nothing is there: links are not followed. */
function compareFrom(comparison: Comparison, path: BytePath): void {
  const { from, to } = comparison.trees;
  const sideOf = (tree: Tree): Entry | null => {
    for (let end = path.indexOf("/", 1); end > 0; end = path.indexOf("/", end + 1)) {
      if (comparison.look(tree, path.slice(0, end))?.type !== "directory") return null;
    }
    return comparison.look(tree, path);
  };
  compareAt(comparison, { path, from: sideOf(from), to: sideOf(to) });
}

interface At {
  readonly path: BytePath;
  readonly from: Entry | null;
  readonly to: Entry | null;
}

function compareAt(comparison: Comparison, { path, from, to }: At): void {
  if (from !== null && to !== null) comparePair(comparison, { path, entry: from }, { path, entry: to });
  else if (from !== null) addGone(comparison, { path, entry: from });
  else if (to !== null) comparison.fresh.push({ path, entry: to });
}

function comparePair(comparison: Comparison, from: Side, to: Side): void {
  const kind = kindOf(comparison, from, to);
  if (kind !== null) comparison.report({ kind, from, to });
  if (kind === "type-changed") {
    for (const child of childrenOf(comparison, "from", from)) addGone(comparison, child);
    for (const child of childrenOf(comparison, "to", to)) comparison.fresh.push(child);
  } else if (to.entry.type === "directory") {
    // Another directory at the same path: no candidate names what is below.
    const scope = from.entry.inode === to.entry.inode ? comparison.scope : EVERYTHING;
    compareBelow({ ...comparison, scope }, from, to);
  }
}

function compareBelow(comparison: Comparison, from: Side, to: Side): void {
  const { trees, scope } = comparison;
  assertOneFilesystem(comparison, "from", from);
  assertOneFilesystem(comparison, "to", to);
  const { path } = to;
  const names = union(trees.from.names(path), trees.to.names(path)).map((name) => `${path}/${name}`);
  const looked = scope.isListed(path) ? names : names.filter((child) => scope.leadsOn(child));
  for (const child of looked) {
    const at = { path: child, from: comparison.look(trees.from, child), to: comparison.look(trees.to, child) };
    if (isUnchangedDirectory(at) && !scope.leadsOn(child)) reportAttributes(comparison, at);
    else compareAt(comparison, at);
  }
}

/** The same directory, of which no candidate says that anything below differs. */
function isUnchangedDirectory({ from, to }: At): boolean {
  return from?.type === "directory" && to?.type === "directory" && from.inode === to.inode;
}

function reportAttributes(comparison: Comparison, { path, from, to }: At): void {
  if (from === null || to === null) return;
  const kind = kindOf(comparison, { path, entry: from }, { path, entry: to });
  if (kind !== null) comparison.report({ kind, from: { path, entry: from }, to: { path, entry: to } });
}

function addGone(comparison: Comparison, side: Side): void {
  comparison.gone.set(side.path, side.entry);
  for (const child of childrenOf(comparison, "from", side)) addGone(comparison, child);
}

function union(a: readonly string[], b: readonly string[]): readonly string[] {
  const known = new Set(a);
  return [...a, ...b.filter((name) => !known.has(name))].sort();
}
