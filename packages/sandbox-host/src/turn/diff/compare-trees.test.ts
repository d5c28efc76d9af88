import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  closeSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { showPath, toBytePath } from "./byte-path.ts";
import { compareTrees, pathOf } from "./compare-trees.ts";
import type { CompareOptions, Difference, Trees } from "./comparison.ts";
import { EVERYTHING, scopeOf } from "./scope.ts";
import { openTree } from "./tree.ts";
import { createTwinTrees, type TwinTrees } from "./twin-trees.suite.ts";

const OPTIONS: CompareOptions = {
  path: "",
  scope: EVERYTHING,
  commonUntilNs: 0n,
  maxEntries: 100_000,
  maxChanges: 100_000,
  tick: () => undefined,
};

const show = (differences: readonly Difference[]): readonly string[] =>
  differences.map((difference) => {
    const { kind, from } = difference;
    const path = showPath(pathOf(difference));
    return kind === "renamed" ? `${kind} ${showPath(from?.path ?? "")} -> ${path}` : `${kind} ${path}`;
  });
const compare = (trees: Trees, more: Partial<CompareOptions> = {}) =>
  show(compareTrees(trees, { ...OPTIONS, ...more }));

/** Fills the first tree, branches, changes the second, and compares as a filesystem with and without births does. */
function changed(
  fill: (at: (path: string) => string) => void,
  change: (at: (path: string) => string, twins: TwinTrees) => void,
): { readonly known: readonly string[]; readonly unknown: readonly string[] } {
  using twins = createTwinTrees();
  fill((path) => join(twins.from, path));
  twins.branch();
  change((path) => join(twins.to, path), twins);
  const options = { commonUntilNs: twins.branchedNs };
  const [known, unknown] = [compare(twins.trees("known"), options), compare(twins.trees("unknown"), options)];
  // Without the shortcut for what is untouched the answer is the same.
  expect(compare(twins.trees("known"))).toEqual(known);
  return { known, unknown };
}

/** The same result whether or not the filesystem records births. */
function changes(...args: Parameters<typeof changed>): readonly string[] {
  const { known, unknown } = changed(...args);
  expect(unknown).toEqual(known);
  return known;
}

const TEXT = "a line that is long enough to be told from another\n";

describe("compareTrees", () => {
  it("finds nothing between two trees that are the same, whatever their times are", () => {
    const found = changes(
      (at) => {
        mkdirSync(at("d"));
        writeFileSync(at("d/a"), TEXT);
        symlinkSync("a", at("d/link"));
      },
      (at) => {
        utimesSync(at("d/a"), 1, 1);
        utimesSync(at("d"), 1, 1);
      },
    );
    expect(found).toEqual([]);
  });

  it("lists what was added, removed and modified, in the order of bytes", () => {
    const found = changes(
      (at) => {
        for (const name of ["gone", "content", "mode", "same", "a-b"]) writeFileSync(at(name), TEXT);
        mkdirSync(at("a"));
        mkdirSync(at("dir"), { mode: 0o755 });
        mkdirSync(at("old"));
        writeFileSync(at("old/inner"), TEXT);
      },
      (at) => {
        unlinkSync(at("gone"));
        appendFileSync(at("content"), "more");
        chmodSync(at("mode"), 0o600);
        chmodSync(at("dir"), 0o700);
        writeFileSync(at("dir/new"), "x");
        writeFileSync(at("a/x"), "x");
        writeFileSync(at("a-b"), "x");
        rmSync(at("old"), { recursive: true });
        symlinkSync("nowhere", at("new-link"));
      },
    );
    expect(found).toEqual([
      "modified /a-b",
      "added /a/x",
      "modified /content",
      "modified /dir",
      "added /dir/new",
      "removed /gone",
      "modified /mode",
      "added /new-link",
      "removed /old",
      "removed /old/inner",
    ]);
  });

  it("has sizes before and after, of files and links only", () => {
    using twins = createTwinTrees();
    writeFileSync(join(twins.from, "a"), "12345");
    twins.branch();
    writeFileSync(join(twins.to, "a"), "123");
    mkdirSync(join(twins.to, "d"));
    const sizes = compareTrees(twins.trees("known"), OPTIONS).map(({ from, to }) => [
      from?.entry.sizeBytes,
      to?.entry.sizeBytes,
    ]);
    expect(sizes).toEqual([
      [5, 3],
      [undefined, 0],
    ]);
  });

  it("sees a change of owner", () => {
    const found = changes(
      (at) => {
        writeFileSync(at("a"), TEXT);
      },
      (at) => {
        execFileSync("chown", ["1234:1234", at("a")]);
      },
    );
    expect(found).toEqual(["modified /a"]);
  });

  it("sees a file replaced by another of the same size and times, also within the second of the snapshot", () => {
    const found = changes(
      (at) => {
        writeFileSync(at("a"), "one");
        utimesSync(at("a"), 5, 5);
        writeFileSync(at("b"), "one");
        utimesSync(at("b"), 5, 5);
      },
      (at) => {
        writeFileSync(at("tmp"), "two");
        renameSync(at("tmp"), at("a"));
        utimesSync(at("a"), 5, 5);
        writeFileSync(at("b"), "two");
        utimesSync(at("b"), 5, 5);
      },
    );
    expect(found).toEqual(["modified /a", "modified /b"]);
  });

  it("trusts an untouched inode only where it was last changed before the common past ended", () => {
    using twins = createTwinTrees();
    writeFileSync(join(twins.from, "a"), "one");
    twins.branch();
    writeFileSync(join(twins.to, "a"), "two");
    const trees = twins.trees("known");
    const time = trees.from.at("/a")?.changedNs ?? 0n;
    // Both sides show the same inode, size and time: as two writes in one second of a coarse clock.
    const coarse = (tree: Trees["from"]): Trees["from"] => ({
      ...tree,
      at: (path) => {
        const entry = tree.at(path);
        return entry === null ? null : { ...entry, changedNs: time };
      },
    });
    const same = { from: coarse(trees.from), to: coarse(trees.to) };
    expect(compare(same, { commonUntilNs: time })).toEqual(["modified /a"]);
    expect(compare(same, { commonUntilNs: time + 1n })).toEqual([]);
  });

  it("finds a rename, also with changed content or mode, with the old path", () => {
    const found = changes(
      (at) => {
        for (const name of ["a", "b", "c"]) writeFileSync(at(name), TEXT + name);
        writeFileSync(at("empty"), "");
        symlinkSync("target", at("link"));
      },
      (at) => {
        renameSync(at("a"), at("new-a"));
        renameSync(at("b"), at("new-b"));
        appendFileSync(at("new-b"), "more");
        renameSync(at("c"), at("new-c"));
        chmodSync(at("new-c"), 0o600);
        renameSync(at("empty"), at("new-empty"));
        renameSync(at("link"), at("new-link"));
      },
    );
    expect(found).toEqual([
      "renamed /a -> /new-a",
      "renamed /b -> /new-b",
      "renamed /c -> /new-c",
      "renamed /empty -> /new-empty",
      "renamed /link -> /new-link",
    ]);
  });

  it("knows a renamed file that was wholly rewritten if times of birth are known, and does not guess otherwise", () => {
    const found = changed(
      (at) => {
        writeFileSync(at("a"), TEXT);
      },
      (at) => {
        renameSync(at("a"), at("b"));
        writeFileSync(at("b"), "0123456789");
      },
    );
    expect(found).toEqual({ known: ["renamed /a -> /b"], unknown: ["removed /a", "added /b"] });
  });

  it("does not take a new file for an old one because it got the number of the old one", () => {
    const found = changes(
      (at) => {
        writeFileSync(at("a"), TEXT);
        mkdirSync(at("d"));
        writeFileSync(at("d/x"), TEXT);
        writeFileSync(at("tiny"), "1\n");
        symlinkSync("somewhere", at("link"));
      },
      (at, twins) => {
        for (const name of ["a", "d", "tiny", "link"]) rmSync(at(name), { recursive: true });
        writeFileSync(at("b"), "nothing in common with the file before");
        mkdirSync(at("e"));
        writeFileSync(at("e/x"), "something else");
        writeFileSync(at("small"), "2\n");
        symlinkSync("elsewhere", at("pointer"));
        twins.reuseInode("b", "a");
        twins.reuseInode("e", "d");
        twins.reuseInode("e/x", "d/x");
        twins.reuseInode("small", "tiny");
        twins.reuseInode("pointer", "link");
      },
    );
    expect(found.filter((line) => line.startsWith("renamed"))).toEqual([]);
    expect(found).toHaveLength(10);
  });

  it("reports a renamed directory once, and of what is in it only what changed", () => {
    const found = changes(
      (at) => {
        mkdirSync(at("d/sub"), { recursive: true });
        for (const name of ["same", "edited", "gone", "sub/deep", "out"]) writeFileSync(at(`d/${name}`), TEXT + name);
      },
      (at) => {
        renameSync(at("d"), at("e"));
        appendFileSync(at("e/edited"), "more");
        unlinkSync(at("e/gone"));
        writeFileSync(at("e/new"), "x");
        renameSync(at("e/out"), at("b"));
        renameSync(at("e/sub"), at("e/renamed"));
      },
    );
    expect(found).toEqual([
      "renamed /d/out -> /b",
      "removed /d/gone",
      "renamed /d -> /e",
      "modified /e/edited",
      "added /e/new",
      "renamed /d/sub -> /e/renamed",
    ]);
  });

  it("finds a directory that came out of a removed one, and one that went into a new one", () => {
    const found = changes(
      (at) => {
        mkdirSync(at("p/q/d"), { recursive: true });
        writeFileSync(at("p/q/d/x"), TEXT);
        mkdirSync(at("z"));
        writeFileSync(at("z/x"), TEXT);
      },
      (at) => {
        renameSync(at("p/q/d"), at("d"));
        rmSync(at("p"), { recursive: true });
        mkdirSync(at("n/m"), { recursive: true });
        renameSync(at("z"), at("n/m/z"));
      },
    );
    expect(found).toEqual([
      "renamed /p/q/d -> /d",
      "added /n",
      "added /n/m",
      "renamed /z -> /n/m/z",
      "removed /p",
      "removed /p/q",
    ]);
  });

  it("calls what is at the same path on both sides modified, whatever file it is", () => {
    const found = changes(
      (at) => {
        writeFileSync(at("a"), `${TEXT}a`);
        writeFileSync(at("b"), `${TEXT}b`);
        writeFileSync(at("backed-up"), TEXT);
      },
      (at) => {
        renameSync(at("a"), at("tmp"));
        renameSync(at("b"), at("a"));
        renameSync(at("tmp"), at("b"));
        renameSync(at("backed-up"), at("backed-up~"));
        writeFileSync(at("backed-up"), "new");
      },
    );
    expect(found).toEqual(["modified /a", "modified /b", "modified /backed-up", "added /backed-up~"]);
  });

  it("goes through two directories that changed places", () => {
    const found = changes(
      (at) => {
        for (const name of ["a", "b"]) {
          mkdirSync(at(name));
          writeFileSync(at(`${name}/only-${name}`), TEXT + name);
          writeFileSync(at(`${name}/both`), TEXT + name);
        }
      },
      (at) => {
        renameSync(at("a"), at("tmp"));
        renameSync(at("b"), at("a"));
        renameSync(at("tmp"), at("b"));
      },
    );
    expect(found).toEqual([
      "modified /a/both",
      "renamed /b/only-b -> /a/only-b",
      "modified /b/both",
      "renamed /a/only-a -> /b/only-a",
    ]);
  });

  it("makes sense of files with several names", () => {
    const found = changes(
      (at) => {
        writeFileSync(at("kept"), `${TEXT}1`);
        writeFileSync(at("two-1"), `${TEXT}2`);
        linkSync(at("two-1"), at("two-2"));
        writeFileSync(at("edited-1"), `${TEXT}3`);
        linkSync(at("edited-1"), at("edited-2"));
        mkdirSync(at("d"));
        writeFileSync(at("d/x"), `${TEXT}4`);
        writeFileSync(at("one"), `${TEXT}5`);
      },
      (at) => {
        linkSync(at("kept"), at("further"));
        renameSync(at("two-1"), at("moved"));
        unlinkSync(at("two-2"));
        appendFileSync(at("edited-1"), "more");
        renameSync(at("d"), at("e"));
        linkSync(at("e/x"), at("b"));
        linkSync(at("one"), at("one-1"));
        linkSync(at("one"), at("one-2"));
        unlinkSync(at("one"));
      },
    );
    expect(found).toEqual([
      "added /b",
      "renamed /d -> /e",
      "modified /edited-1",
      "modified /edited-2",
      "added /further",
      "renamed /two-1 -> /moved",
      "renamed /one -> /one-1",
      "added /one-2",
      "removed /two-2",
    ]);
  });

  it("finds one kind of file that became another, with all that was or is in it", () => {
    const found = changes(
      (at) => {
        mkdirSync(at("dir-to-link"));
        writeFileSync(at("dir-to-link/x"), TEXT);
        writeFileSync(at("file-to-dir"), TEXT);
        symlinkSync("x", at("link-to-file"));
        writeFileSync(at("file-to-fifo"), TEXT);
      },
      (at) => {
        rmSync(at("dir-to-link"), { recursive: true });
        symlinkSync("/etc", at("dir-to-link"));
        unlinkSync(at("file-to-dir"));
        mkdirSync(at("file-to-dir"));
        writeFileSync(at("file-to-dir/y"), "x");
        unlinkSync(at("link-to-file"));
        writeFileSync(at("link-to-file"), "x");
        unlinkSync(at("file-to-fifo"));
        execFileSync("mkfifo", [at("file-to-fifo")]);
      },
    );
    expect(found).toEqual([
      "type-changed /dir-to-link",
      "removed /dir-to-link/x",
      "type-changed /file-to-dir",
      "added /file-to-dir/y",
      "type-changed /file-to-fifo",
      "type-changed /link-to-file",
    ]);
  });

  it("compares special files by their attributes and never opens them", () => {
    const found = changes(
      (at) => {
        execFileSync("mkfifo", [at("same"), at("mode")]);
        execFileSync("mknod", [at("device"), "c", "1", "3"]);
      },
      (at) => {
        chmodSync(at("mode"), 0o600);
        unlinkSync(at("device"));
        execFileSync("mknod", [at("device"), "c", "1", "5"]);
        execFileSync("mkfifo", [at("new")]);
      },
    );
    expect(found).toEqual(["modified /device", "modified /mode", "added /new"]);
  });

  it("compares links by what they say and never goes where they lead", () => {
    const found = changes(
      (at) => {
        symlinkSync("/proc", at("out"));
        symlinkSync("one", at("said"));
        symlinkSync(".", at("loop"));
      },
      (at) => {
        unlinkSync(at("said"));
        symlinkSync("two", at("said"));
      },
    );
    expect(found).toEqual(["modified /said"]);
  });

  it("copes with names that are no text, hold newlines, or sort oddly", () => {
    using twins = createTwinTrees();
    twins.branch();
    const names = [[0xff], [0xfe, 0x0a], [0xf0, 0x9f, 0x92, 0xa9], [0xef, 0xbf, 0xbd], [0x2d, 0x2d, 0x72], [0x5c]];
    for (const name of names) writeFileSync(Buffer.concat([Buffer.from(`${twins.to}/`), Buffer.from(name)]), "x");
    const found = compare(twins.trees("known"));
    expect(found).toEqual([
      "added /--r",
      "added /\\",
      "added /\u{fffd}",
      "added /\u{1f4a9}",
      "added /\u{fffd}\n",
      "added /\u{fffd}",
    ]);
    expect(JSON.parse(JSON.stringify(found))).toEqual(found);
  });

  it("reads a huge file no further than its first difference", () => {
    using twins = createTwinTrees();
    const sparse = (path: string, first: string) => {
      const file = openSync(path, "w");
      ftruncateSync(file, 4 * 1024 ** 4);
      writeSync(file, first, 0);
      closeSync(file);
    };
    sparse(join(twins.from, "huge"), "a");
    // Not branched: this is not copied.
    mkdirSync(twins.to);
    sparse(join(twins.to, "huge"), "b");
    let ticks = 0;
    const trees = { from: openTree(twins.from), to: openTree(twins.to) };
    expect(compare(trees, { tick: () => (ticks += 1) })).toEqual(["modified /huge"]);
    expect(ticks).toBeLessThan(10);
    truncateSync(join(twins.to, "huge"), 0);
  });

  it("looks only at a path and below it, and does not follow a link on the way there", () => {
    using twins = createTwinTrees();
    mkdirSync(join(twins.from, "w/in"), { recursive: true });
    writeFileSync(join(twins.from, "w/in/a"), TEXT);
    symlinkSync("w", join(twins.from, "link"));
    twins.branch();
    renameSync(join(twins.to, "w/in/a"), join(twins.to, "w/out"));
    writeFileSync(join(twins.to, "w/in/b"), "x");
    writeFileSync(join(twins.to, "elsewhere"), "x");
    const below = (path: string) => compare(twins.trees("known"), { path: toBytePath(path) });
    expect(below("/w/in")).toEqual(["removed /w/in/a", "added /w/in/b"]);
    expect(below("/w")).toEqual(["added /w/in/b", "renamed /w/in/a -> /w/out"]);
    expect(below("/w/in/b")).toEqual(["added /w/in/b"]);
    expect(below("/link/in")).toEqual([]);
    expect(below("/w/in/a/b")).toEqual([]);
    expect(below("/nothing/here")).toEqual([]);
  });

  it("names the limit that a comparison is over", () => {
    using twins = createTwinTrees();
    twins.branch();
    for (let count = 0; count < 20; count += 1) writeFileSync(join(twins.to, `f${count}`), "x");
    const trees = twins.trees("known");
    expect(() => compare(trees, { maxChanges: 10 })).toThrow("more than 10 changes");
    expect(() => compare(trees, { maxEntries: 5 })).toThrow("more than 5 entries");
  });

  it("gives the same answer from candidates, also where they miss further names of a file", () => {
    using twins = createTwinTrees();
    mkdirSync(join(twins.from, "d"));
    mkdirSync(join(twins.from, "quiet"));
    writeFileSync(join(twins.from, "d/one"), TEXT);
    linkSync(join(twins.from, "d/one"), join(twins.from, "quiet/two"));
    twins.branch();
    appendFileSync(join(twins.to, "d/one"), "more");
    linkSync(join(twins.to, "d/one"), join(twins.to, "d/three"));
    const trees = twins.trees("known");
    const all = ["added /d/three", "modified /d/one", "modified /quiet/two"].sort((a, b) =>
      a.slice(a.indexOf("/")) < b.slice(b.indexOf("/")) ? -1 : 1,
    );
    expect(compare(trees)).toEqual(all);
    expect(compare(trees, { scope: scopeOf(["/d", "/d/one"]) })).toEqual(all);
  });

  it("gives the same answer from candidates where two directories changed places, and of what is in them nothing", () => {
    using twins = createTwinTrees();
    for (const name of ["a", "b"]) {
      mkdirSync(join(twins.from, name, "sub"), { recursive: true });
      writeFileSync(join(twins.from, name, "sub/x"), TEXT + name);
    }
    twins.branch();
    renameSync(join(twins.to, "a"), join(twins.to, "tmp"));
    renameSync(join(twins.to, "b"), join(twins.to, "a"));
    renameSync(join(twins.to, "tmp"), join(twins.to, "b"));
    const trees = twins.trees("known");
    expect(compare(trees)).toEqual(["modified /a/sub/x", "modified /b/sub/x"]);
    expect(compare(trees, { scope: scopeOf(["/", "/a", "/b"]) })).toEqual(compare(trees));
  });

  it("looks at all of a directory whose candidates could not be spelled", () => {
    using twins = createTwinTrees();
    mkdirSync(join(twins.from, "d"));
    twins.branch();
    const odd = Buffer.concat([Buffer.from(`${twins.to}/d/`), Buffer.from([0xff])]);
    mkdirSync(odd);
    writeFileSync(Buffer.concat([odd, Buffer.from("/x")]), "x");
    const scope = scopeOf(["/d/\u{fffd}/x"]);
    expect(compare(twins.trees("known"), { scope })).toEqual(["added /d/\u{fffd}", "added /d/\u{fffd}/x"]);
  });
});
