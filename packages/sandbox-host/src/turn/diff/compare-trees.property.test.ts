import {
  appendFileSync,
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { BytePath } from "./byte-path.ts";
import { compareTrees, pathOf } from "./compare-trees.ts";
import type { Difference, Trees } from "./comparison.ts";
import { EVERYTHING, type Scope, scopeOf } from "./scope.ts";
import type { Entry, Tree } from "./tree.ts";
import { createTwinTrees } from "./twin-trees.suite.ts";

type Operation = (root: string) => void;

const name = fc.constantFrom("a", "b", "c", "d");
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/"));
const text = fc.constantFrom("", "1", "a text of some length\n", "another text of some length\n");

/** What does not fit the tree is not done. Links lead nowhere but into the tree: some operations go through them. */
const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({ path, text }).map((it) => (root: string) => writeFileSync(join(root, it.path), it.text)),
  fc.record({ path, text }).map((it) => (root: string) => appendFileSync(join(root, it.path), it.text)),
  path.map((it) => (root: string) => void mkdirSync(join(root, it), { recursive: true })),
  path.map((it) => (root: string) => rmSync(join(root, it), { recursive: true })),
  fc.record({ path, text: fc.constantFrom("a", "nowhere") }).map((it) => (root: string) => {
    symlinkSync(it.text, join(root, it.path));
  }),
  fc.record({ path, mode: fc.constantFrom(0o600, 0o711) }).map((it) => (root: string) => {
    if (!lstatSync(join(root, it.path)).isSymbolicLink()) chmodSync(join(root, it.path), it.mode);
  }),
  fc.record({ path, to: path }).map((it) => (root: string) => renameSync(join(root, it.path), join(root, it.to))),
  fc.record({ path, to: path }).map((it) => (root: string) => linkSync(join(root, it.path), join(root, it.to))),
  fc.record({ path, to: path }).map((it) => (root: string) => {
    renameSync(join(root, it.path), join(root, "swapped"));
    renameSync(join(root, it.to), join(root, it.path));
    renameSync(join(root, "swapped"), join(root, it.to));
  }),
);

/** Enough for most operations to find something. */
function fill(root: string): void {
  for (const directory of ["a/a", "a/b", "b/a"]) mkdirSync(join(root, directory), { recursive: true });
  for (const file of ["a/c", "b/c", "a/a/c", "a/b/c", "b/a/c", "b/a/d"])
    writeFileSync(join(root, file), `this is the file that was made at ${file}\n`);
  linkSync(join(root, "a/c"), join(root, "b/d"));
}

const operations = (maxLength: number) => fc.array(operation, { maxLength });

function apply(root: string, all: readonly Operation[]): void {
  for (const one of all) {
    try {
      one(root);
    } catch {
      // It does not fit.
    }
  }
}

type Listing = Map<BytePath, string>;

/** Everything that makes an entry what it is, by path. */
function listing(root: string, tree: Tree): Listing {
  const all: Listing = new Map();
  for (const [at, entry] of entriesOf(tree)) {
    const place = join(root, at);
    const content =
      entry.type === "file" ? readFileSync(place, "utf8") : entry.type === "symlink" ? tree.target(at) : "";
    all.set(at, JSON.stringify([entry.type, entry.mode, content]));
  }
  return all;
}

function entriesOf(tree: Tree, at: BytePath = ""): readonly (readonly [BytePath, Entry])[] {
  const entry = tree.at(at);
  if (entry === null) return [];
  const below = entry.type === "directory" ? tree.names(at).flatMap((one) => entriesOf(tree, `${at}/${one}`)) : [];
  return [[at, entry], ...below];
}

/** Does to the first listing what the differences say, knowing the second only for what they name. */
function replay(from: Listing, to: Listing, differences: readonly Difference[]): Listing {
  const result = new Map(from);
  const of = (kind: Difference["kind"]) => differences.filter((difference) => difference.kind === kind);
  for (const difference of of("removed")) expect(result.delete(pathOf(difference))).toBe(true);
  const detached = of("renamed")
    .map(({ from: old, to: now }) => ({ old: old?.path ?? "", now: now?.path ?? "" }))
    // What was moved out of a renamed directory is taken out first.
    .sort((a, b) => b.old.length - a.old.length)
    .map(({ old, now }) => {
      const subtree = [...result].filter(([at]) => at === old || at.startsWith(`${old}/`));
      for (const [at] of subtree) result.delete(at);
      return subtree.map(([at, what]) => [now + at.slice(old.length), what] as const);
    });
  for (const [at, what] of detached.flat()) result.set(at, what);
  for (const difference of differences.filter(({ kind }) => kind !== "removed")) {
    const at = pathOf(difference);
    expect(result.has(at)).toBe(difference.kind !== "added");
    if (difference.kind === "modified" || difference.kind === "type-changed")
      expect(result.get(at)).not.toBe(to.get(at));
    result.set(at, to.get(at) ?? "missing");
  }
  return result;
}

/** What `zfs diff` names: the objects that were written, each by one of its paths on each side, and nothing that only moved along. */
function candidatesLikeZfs({ from, to }: Trees): readonly string[] {
  const firstPaths = (tree: Tree) => {
    const objects = new Map<bigint, readonly [BytePath, Entry]>();
    for (const [at, entry] of entriesOf(tree)) if (!objects.has(entry.inode)) objects.set(entry.inode, [at, entry]);
    return objects;
  };
  const [before, after] = [firstPaths(from), firstPaths(to)];
  const named: string[] = [];
  for (const inode of new Set([...before.keys(), ...after.keys()])) {
    const [a, b] = [before.get(inode), after.get(inode)];
    if (a?.[1].changedNs === b?.[1].changedNs && a?.[1].birthNs === b?.[1].birthNs) continue;
    for (const side of [a, b]) if (side !== undefined) named.push(side[0] === "" ? "/" : side[0]);
  }
  return named;
}

describe("compareTrees, on random changes", () => {
  it.each(["known", "unknown"] as const)(
    "says exactly what leads from one tree to the other, from a walk as from candidates (births %s)",
    (births) => {
      const property = fc.property(operations(6), operations(10), (made, changes) => {
        using twins = createTwinTrees();
        fill(twins.from);
        apply(twins.from, made);
        twins.branch();
        apply(twins.to, changes);
        const trees = twins.trees(births);
        const compare = (scope: Scope, commonUntilNs: bigint) =>
          compareTrees(trees, {
            path: "",
            scope,
            commonUntilNs,
            maxEntries: 10_000,
            maxChanges: 10_000,
            tick: () => undefined,
          });
        const walked = compare(EVERYTHING, 0n);
        const [from, to] = [listing(twins.from, trees.from), listing(twins.to, trees.to)];

        expect(replay(from, to, walked)).toEqual(to);
        const paths = walked.map(pathOf);
        expect(paths).toEqual([...new Set(paths)].sort());
        for (const difference of walked.filter(({ kind }) => kind === "renamed")) {
          expect(from.has(difference.to?.path ?? "")).toBe(false);
          expect(to.has(difference.from?.path ?? "")).toBe(false);
        }
        expect(compare(EVERYTHING, twins.branchedNs)).toEqual(walked);
        expect(compare(scopeOf([...from.keys(), ...to.keys()].map((at) => at || "/")), 0n)).toEqual(walked);
        expect(compare(scopeOf(candidatesLikeZfs(twins.trees("known"))), twins.branchedNs)).toEqual(walked);
        if (births === "known") expectNoMissedRename(walked);
      });
      fc.assert(property, { numRuns: 60 });
    },
    120_000,
  );
});

/** What is there under a new path only was not removed and added. */
function expectNoMissedRename(differences: readonly Difference[]): void {
  const key = (entry: Entry | undefined) => `${entry?.type ?? ""} ${entry?.inode ?? 0n} ${entry?.birthNs ?? 0n}`;
  const removed = new Set(differences.filter(({ kind }) => kind === "removed").map(({ from }) => key(from?.entry)));
  for (const { kind, to } of differences) if (kind === "added") expect(removed.has(key(to?.entry))).toBe(false);
}
