import type { BytePath } from "./byte-path.ts";
import type { ChangeKind } from "./change.ts";
import { hasSameBytes } from "./content.ts";
import { DiffFailure } from "./failure.ts";
import type { Scope } from "./scope.ts";
import type { Entry, Tree } from "./tree.ts";

export interface Trees {
  readonly from: Tree;
  readonly to: Tree;
}

/** What is on one side of a difference. */
export interface Side {
  readonly path: BytePath;
  readonly entry: Entry;
}

/** An entry at a path that had none before. */
export interface NewEntry extends Side {
  /** Its path before, if it only moved along with its directory. */
  readonly formerPath?: BytePath;
}

/** A difference with both its sides. */
export interface Difference {
  readonly kind: ChangeKind;
  readonly from: Side | null;
  readonly to: Side | null;
}

export interface CompareOptions {
  /** The path to begin at; it belongs to the result itself. */
  readonly path: BytePath;
  readonly scope: Scope;
  /** Both trees continue from one state at this time: what was last changed before is the same in both. */
  readonly commonUntilNs: bigint;
  readonly maxEntries: number;
  readonly maxChanges: number;
  /** Called again and again; throws to end the comparison. */
  readonly tick: () => void;
}

/** What the parts of one comparison share. */
export interface Comparison extends CompareOptions {
  readonly trees: Trees;
  /** Whether everything is looked at, or what a backend named as candidates. */
  readonly completeness: "everything" | "candidates";
  /** Everything of the earlier tree that is not at its path any more, directories with all that was in them. */
  readonly gone: Map<BytePath, Entry>;
  /** The topmost entries that were not at their path before. */
  readonly fresh: NewEntry[];
  report(difference: Difference): void;
  /** What is at the path on one side, counted. */
  look(tree: Tree, path: BytePath): Entry | null;
}

/** A file with more than one name changed, and the candidates need not have all of them. */
export class NamesMissing extends Error {}

/** How two entries that belong together differ; null if they do not. */
export function kindOf(comparison: Comparison, from: Side, to: Side): "modified" | "type-changed" | null {
  const [a, b] = [from.entry, to.entry];
  if (a.type !== b.type) return "type-changed";
  const sameAttributes = a.mode === b.mode && a.uid === b.uid && a.gid === b.gid && a.device === b.device;
  if (sameAttributes && hasSameContent(comparison, from, to)) return null;
  assertNamesKnown(comparison, from, to);
  return "modified";
}

/** Throws `NamesMissing` if a file that differs may have further names that are not compared. */
export function assertNamesKnown({ completeness }: Comparison, { entry: a }: Side, { entry: b }: Side): void {
  if (completeness === "candidates" && b.type === "file" && Math.max(a.links, b.links) > 1) throw new NamesMissing();
}

function hasSameContent({ trees, commonUntilNs, tick }: Comparison, from: Side, to: Side): boolean {
  const [a, b] = [from.entry, to.entry];
  if (b.type !== "file" && b.type !== "symlink") return true;
  if (a.sizeBytes !== b.sizeBytes) return false;
  const untouched = a.inode === b.inode && a.changedNs === b.changedNs && a.changedNs < commonUntilNs;
  if (untouched) return true;
  if (b.type === "symlink") return trees.from.target(from.path) === trees.to.target(to.path);
  return hasSameBytes(
    { tree: trees.from, path: from.path, sizeBytes: a.sizeBytes },
    { tree: trees.to, path: to.path, sizeBytes: b.sizeBytes },
    tick,
  );
}

/** What is in a directory; nothing is in anything else. */
export function* childrenOf(comparison: Comparison, at: "from" | "to", side: Side): Generator<Side> {
  if (side.entry.type !== "directory") return;
  assertOneFilesystem(comparison, at, side);
  const tree = comparison.trees[at];
  for (const name of tree.names(side.path)) {
    const path = `${side.path}/${name}`;
    const entry = comparison.look(tree, path);
    if (entry !== null) yield { path, entry };
  }
}

/** Nothing is looked at that is mounted inside of the files. */
export function assertOneFilesystem({ trees }: Comparison, at: "from" | "to", { entry }: Side): void {
  if (entry.filesystem !== trees[at].filesystem)
    throw new DiffFailure("io", "another filesystem is mounted inside of the files");
}
