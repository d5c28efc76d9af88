import { execFileSync } from "node:child_process";
import { lstatSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BytePath } from "./byte-path.ts";
import type { Trees } from "./comparison.ts";
import { type Entry, openTree, type Tree } from "./tree.ts";

/**
 * Two directories that behave like two clones of one snapshot: what is copied keeps its inode, its birth and, until it is
 * touched, its time of change, as in a snapshot. Real inodes are translated, so a number that the disk
 * gives to a new file after its owner's end looks reused here as well.
 */
export interface TwinTrees extends Disposable {
  readonly from: string;
  readonly to: string;
  /** Copies all of the first to the second. Call once, when the first is as it should be. */
  branch(): void;
  /** Lets the file at `path` of the second have the inode that `formerPath` had in the first. */
  reuseInode(path: string, formerPath: string): void;
  /** `births: "unknown"` is zfs-fuse, which does not record when a file was made. */
  trees(births: "known" | "unknown"): Trees;
  /** A time after everything in the first and before every change to the second. */
  readonly branchedNs: bigint;
}

interface Origin {
  readonly copied: Entry;
  readonly original: Entry;
}

const stat = (path: string) => lstatSync(path, { bigint: true });

export function createTwinTrees(): TwinTrees {
  const directory = mkdtempSync(join(tmpdir(), "turnbox-twins-"));
  const [from, to] = [join(directory, "from"), join(directory, "to")];
  mkdirSync(from);
  const origins = new Map<bigint, Origin>();
  const reused = new Map<bigint, bigint>();
  let branchedNs = 0n;

  const translate = (entry: Entry): Entry => {
    const origin = origins.get(entry.inode);
    const inode = reused.get(entry.inode) ?? origin?.original.inode ?? entry.inode;
    if (origin?.copied.birthNs !== entry.birthNs) return { ...entry, inode };
    const { original, copied } = origin;
    const changedNs = entry.changedNs === copied.changedNs ? original.changedNs : entry.changedNs;
    return { ...entry, inode, changedNs, birthNs: original.birthNs };
  };
  const wrap = (tree: Tree, births: "known" | "unknown", change: (entry: Entry) => Entry): Tree => ({
    ...tree,
    at: (path: BytePath) => {
      const entry = tree.at(path);
      if (entry === null) return null;
      const changed = change(entry);
      return births === "known" ? changed : { ...changed, birthNs: null };
    },
  });
  return {
    from,
    to,
    get branchedNs() {
      return branchedNs;
    },
    branch: () => {
      execFileSync("cp", ["-a", from, to]);
      const [first, second] = [openTree(from), openTree(to)];
      const note = (path: BytePath): void => {
        const [a, b] = [first.at(path), second.at(path)];
        if (a === null || b === null) throw new Error(`${path} was not copied`);
        origins.set(b.inode, { copied: b, original: a });
        if (a.type === "directory") for (const name of first.names(path)) note(`${path}/${name}`);
      };
      note("");
      // The disk's clock goes on in steps: what is changed from here on has to have a later time.
      const probe = join(directory, "probe");
      const copiedNs = () => (writeFileSync(probe, "x"), stat(probe).ctimeNs);
      const last = copiedNs();
      do branchedNs = copiedNs();
      while (branchedNs === last);
    },
    reuseInode: (path, formerPath) => {
      reused.set(stat(join(to, path)).ino, stat(join(from, formerPath)).ino);
    },
    trees: (births) => ({
      from: wrap(openTree(from), births, (entry) => entry),
      to: wrap(openTree(to), births, translate),
    }),
    [Symbol.dispose]: () => {
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
