import { checkSnapshot } from "../names.ts";
import type { SnapshotRef, StorageCall } from "../storage.ts";
import { readAncestry } from "./ancestry.ts";
import { mountOf } from "./heads.ts";
import { filesystemOf, headOf } from "./layout.ts";
import type { ZfsPool } from "./zfs-pool.ts";

const DIFF_DEADLINE_MS = 60_000;

/**
 * The paths that differ between two snapshots, by `zfs diff`. zfs-fuse does not have it, it needs the later head mounted,
 * it fails on some files, and it may take longer than a walk through everything: in all these cases this returns null.
 */
export async function changedPaths(
  pool: ZfsPool,
  from: SnapshotRef,
  { to, signal }: StorageCall & { readonly to: SnapshotRef },
): Promise<readonly string[] | null> {
  checkSnapshot(from);
  checkSnapshot(to);
  if (pool.flavor !== "openzfs") return null;
  const ancestry = await readAncestry(pool, { from, to }, signal);
  if (ancestry.segments?.length === 0) return [];
  const head = headOf(pool.layout, filesystemOf(ancestry.to.name));
  if (ancestry.segments === undefined || head === undefined) return null;
  const target = mountOf(pool, head);
  if (!pool.mounts.isMounted(target)) return null;
  const args = ["diff", "-FH", ancestry.from.name, ancestry.to.name];
  const outcome = await pool.zfs.attempt({ program: "zfs", args, deadlineMs: DIFF_DEADLINE_MS }, signal);
  return outcome.kind === "done" ? parseDiff(outcome.stdout, target.path) : null;
}

/**
 * The paths in what `zfs diff -FH` prints, absolute below the mount, sorted; null if a line cannot be understood. A line
 * is a kind of change, a type of file and a path, then a second path if it was renamed, or a change of its link count.
 */
export function parseDiff(stdout: string, mountPath: string): readonly string[] | null {
  const paths = new Set<string>();
  for (const line of stdout.split("\n").filter((text) => text !== "")) {
    const found = parseLine(line, mountPath);
    if (found === null) return null;
    for (const path of found) paths.add(path);
  }
  return [...paths].sort();
}

function parseLine(line: string, mountPath: string): readonly string[] | null {
  const [change, type, path, more, ...rest] = line.split("\t");
  if (change === undefined || !/^[-+MR]$/.test(change) || type === undefined || path === undefined) return null;
  if (rest.length > 0) return null;
  if (change !== "R") return more === undefined || /^\([-+]\d+\)$/.test(more) ? together([path], mountPath) : null;
  return more === undefined ? null : together([path, more], mountPath);
}

function together(escaped: readonly string[], mountPath: string): readonly string[] | null {
  const paths = escaped.map((path) => inside(unescape(path), mountPath));
  return paths.some((path) => path === null) ? null : paths.filter((path) => path !== null);
}

function inside(path: string, mountPath: string): string | null {
  if (path === mountPath || path === `${mountPath}/`) return "/";
  if (!path.startsWith(`${mountPath}/`)) return null;
  // Attributes are files of a hidden directory here; outside ZFS they are a part of their owner.
  const [owner = ""] = path.slice(mountPath.length).split("/<xattrdir>");
  return owner === "" ? "/" : owner;
}

/** Every byte but printable ASCII is `\0` and three octal digits, each byte of a character by itself. */
function unescape(text: string): string {
  const bytes = Buffer.from(text, "utf8").toString("latin1");
  const plain = bytes.replace(/\\0([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8) & 0xff),
  );
  return Buffer.from(plain, "latin1").toString("utf8");
}
